// Two ES modules: workbench/board/static/board.js (or the path given), with its style sheet inside, and beside it editors.js, which the
// board asks its kernel for when its first screen stands; and the licences of what went in.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const outfile = resolve(process.argv[2] ?? resolve(here, "../../workbench/board/static/board.js"));
const editors = join(dirname(outfile), "editors.js");
const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
  logLevel: "warning",
  metafile: true,
};

const second = await build({ ...common, entryPoints: ["src/codemirror.ts"], outfile: editors });
// The board takes the editors that were made with it and no others: it knows them by their hash.
const hash = createHash("sha256").update(readFileSync(editors)).digest("hex");
const first = await build({ ...common, entryPoints: ["src/main.ts"], outfile, define: { EDITORS: JSON.stringify(hash) }, write: false });

const strays = Object.keys(first.metafile.inputs).filter((input) => input.includes("node_modules/") || input === "src/codemirror.ts");
if (strays.length) {
  console.error(`${strays[0]} is in the board's first module: import src/codemirror.ts as a type only, and go through src/editor.ts`);
  process.exit(1);
}
writeFileSync(outfile, first.outputFiles[0].contents);

const packages = new Set();
for (const input of Object.keys(second.metafile.inputs)) {
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
const notices = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : "";
  return `${name} ${version} (${license})\n\n${text}\n`;
});
writeFileSync(join(dirname(outfile), "LICENSES.txt"), `editors.js contains these packages.\n\n${notices.join("\n---\n\n")}`);

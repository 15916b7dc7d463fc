// One ES module with its style sheet inside: workbench/board/static/board.js, or the path given.
import { build } from "esbuild";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const outfile = resolve(process.argv[2] ?? resolve(here, "../../workbench/board/static/board.js"));

await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  outfile,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
  logLevel: "warning",
});

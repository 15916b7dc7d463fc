// The prebuilt extension, as JupyterLab finds it in share/jupyter/labextensions: into build-out/labextension, or the folder given.
//
// esbuild and the board's packages come from ../board; speedscope is copied as it was published. JupyterLab's own modules are taken from
// its shared scope at run time (src/container.ts), so nothing here depends on one of its versions.
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../../build-out/labextension"));
const files = join(out, "static");
const { build } = createRequire(join(here, "../board/package.json"))("esbuild");
const read = (...path) => readFileSync(join(here, ...path), "utf8");

const shared = new Set();
/** JupyterLab's modules become look-ups in what container.ts has fetched. */
const fromJupyterLab = {
  name: "from-jupyterlab",
  setup(plugins) {
    plugins.onResolve({ filter: /^@(jupyterlab|lumino)\// }, ({ path }) => ({ path, namespace: "jupyterlab" }));
    plugins.onLoad({ filter: /.*/, namespace: "jupyterlab" }, ({ path }) => {
      shared.add(path);
      return { contents: `module.exports = globalThis.kernelWorkbench.modules[${JSON.stringify(path)}];` };
    });
  },
};
const common = { absWorkingDir: here, bundle: true, minify: true, target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" };

rmSync(out, { recursive: true, force: true });
mkdirSync(files, { recursive: true });
const main = await build({
  ...common,
  entryPoints: ["src/main.ts"],
  outdir: files,
  format: "esm",
  splitting: true,
  entryNames: "[name].[hash]",
  chunkNames: "[name].[hash]",
  loader: { ".css": "text", ".svg": "text" },
  define: { EDITORS: '""' }, // the board's editors are a file of the extension's
  plugins: [fromJupyterLab],
  metafile: true,
});
const entry = Object.keys(main.metafile.outputs).find((name) => main.metafile.outputs[name].entryPoint === "src/main.ts");
const { outputFiles } = await build({
  ...common,
  entryPoints: ["src/container.ts"],
  format: "iife",
  write: false,
  define: { SHARED: JSON.stringify([...shared].sort()), MAIN: JSON.stringify(entry.split("/").at(-1)) },
});
const door = outputFiles[0].text;
const load = `static/remoteEntry.${createHash("sha256").update(door).digest("hex").slice(0, 12)}.js`;
writeFileSync(join(out, load), door);

const released = join(here, "node_modules/speedscope/dist/release");
for (const name of readdirSync(released)) {
  // Its sample profile and the reader of Java recordings are of no use here.
  if (/\.(js|css|html|png|ico|woff2)$/.test(name)) cpSync(join(released, name), join(files, "speedscope", name));
}

const own = JSON.parse(read("package.json"));
const version = /"(.+)"/.exec(read("../../workbench/_version.py"))[1];
const description = {
  name: own.name,
  version,
  description: own.description,
  license: own.license,
  author: "The Kernel Workbench authors",
  jupyterlab: {
    extension: true,
    mimeExtension: true,
    schemaDir: "schema",
    _build: { load, extension: "./extension", mimeExtension: "./mimeExtension" },
  },
};
writeFileSync(join(out, "package.json"), JSON.stringify(description, null, 2));
const schemas = join(out, "schemas", own.name);
cpSync(join(here, "schema"), schemas, { recursive: true });
writeFileSync(join(schemas, "package.json.orig"), JSON.stringify(description, null, 2));
const pip = { packageManager: "python", packageName: "kernel-workbench", uninstallInstructions: "pip uninstall kernel-workbench" };
writeFileSync(join(out, "install.json"), JSON.stringify(pip, null, 2));

const packages = new Map([["speedscope", join(here, "node_modules/speedscope")]]);
for (const input of Object.keys(main.metafile.inputs)) {
  const found = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(input);
  if (found) packages.set(found[2], join(here, found[1]));
}
const notices = [...packages].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, folder]) => {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : "";
  return `${name} ${about.version} (${about.license})\n\n${text}\n`;
});
notices.push(`Source Code Pro, the font of speedscope\n\n${read("node_modules/speedscope/dist/release/source-code-pro.LICENSE.md").trim()}\n`);
writeFileSync(join(files, "LICENSES.txt"), `The extension contains these packages.\n\n${notices.join("\n---\n\n")}`);

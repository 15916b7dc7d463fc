/**
 * The door by which JupyterLab takes the extension in: a module-federation container, written out by hand.
 *
 * JupyterLab runs this script, hands its shared modules to `init`, and asks for `./extension` and `./mimeExtension`. Both are in an ES
 * module beside this script, which is loaded once the shared modules that it names are here. No bundler of JupyterLab's is needed, so
 * one build serves every JupyterLab 4.
 */

/** Filled in by build.mjs: the names of the shared modules, and the file of the ES module. */
declare const SHARED: readonly string[];
declare const MAIN: string;

interface Provider {
  get(): Promise<() => unknown>;
}
type Scope = Record<string, Record<string, Provider>>;

const base = (document.currentScript as HTMLScriptElement).src.replace(/[^/]*$/, "");
let scope: Scope | undefined;
let entry: Promise<Record<string, unknown>> | undefined;

async function shared(name: string): Promise<[string, unknown]> {
  // Shared modules are singletons; where another extension brought one too, the first is JupyterLab's own.
  const provider = Object.values(scope?.[name] ?? {})[0];
  if (!provider) throw new Error(`Kernel Workbench needs ${name}, which this front end does not share`);
  return [name, (await provider.get())()];
}

async function load(): Promise<Record<string, unknown>> {
  const modules = Object.fromEntries(await Promise.all(SHARED.map(shared)));
  Object.assign(globalThis, { kernelWorkbench: { base, modules } });
  return (await import(base + MAIN)) as Record<string, unknown>;
}

const container = {
  init(given: Scope): void {
    scope ??= given;
  },
  async get(name: string): Promise<() => unknown> {
    entry ??= load();
    const plugins = (await entry)[name.replace("./", "")];
    if (plugins === undefined) throw new Error(`Kernel Workbench has no module ${name}`);
    return () => ({ default: plugins, __esModule: true });
  },
};

const known = window as unknown as { _JUPYTERLAB?: Record<string, unknown> };
(known._JUPYTERLAB ??= {})["kernel-workbench"] = container;

export {};

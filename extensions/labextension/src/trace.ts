/** Profiler traces in a tab: speedscope (MIT), served with the extension, reads them in this browser. Nothing leaves the machine. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { InputDialog, MainAreaWidget } from "@jupyterlab/apputils";
import type { ICommandPalette } from "@jupyterlab/apputils";
import { ABCWidgetFactory, DocumentWidget } from "@jupyterlab/docregistry";
import type { Context } from "@jupyterlab/docregistry";
import { Widget } from "@lumino/widgets";
import { h } from "../../board/src/dom";
import { TRACE } from "../../bridge";
import type { TraceDetail } from "../../bridge";
import { CATEGORY } from "./commands";
import { icon } from "./icon";

const TYPE = "kernel-workbench-trace";
const FACTORY = "Profiler Trace";
const COMMAND = "kernel-workbench:open-trace";
let opened = 0;

export function addTraces(app: JupyterFrontEnd, palette: ICommandPalette | null): void {
  app.docRegistry.addFileType({
    name: TYPE,
    displayName: "Profiler trace",
    extensions: [".trace.json", ".trace.json.gz"],
    mimeTypes: ["application/json"],
    fileFormat: "base64",
    contentType: "file",
    icon,
  });
  const factory = new TraceFactory({ name: FACTORY, modelName: "base64", fileTypes: [TYPE], defaultFor: [TYPE], readOnly: true });
  app.docRegistry.addWidgetFactory(factory);
  app.commands.addCommand(COMMAND, {
    label: "Open Profiler Trace…",
    caption: "Shows a Chrome trace (.json or .json.gz) in a tab; nothing is sent anywhere",
    icon,
    describedBy: { args: { type: "object", properties: { path: { type: "string" } } } },
    execute: async (args) => {
      const given = typeof args["path"] === "string" ? args["path"] : await askForPath();
      if (given) await app.commands.execute("docmanager:open", { path: given, factory: FACTORY });
    },
  });
  palette?.addItem({ command: COMMAND, category: CATEGORY });
  document.addEventListener(TRACE, (event) => {
    event.preventDefault();
    open(app, (event as CustomEvent<TraceDetail>).detail);
  });
}

async function askForPath(): Promise<string> {
  const { value } = await InputDialog.getText({ title: "Open a profiler trace", label: "Path of a Chrome trace, ….trace.json or ….trace.json.gz" });
  return value?.trim() ?? "";
}

/** What the file browser opens traces with. */
class TraceFactory extends ABCWidgetFactory<DocumentWidget> {
  protected override createNewWidget(context: Context): DocumentWidget {
    const content = new Viewer();
    void context.ready.then(() => content.show(new Blob([bytes(context.model.toString())]), context.path.split("/").at(-1) ?? ""));
    return new DocumentWidget({ content, context });
  }
}

/** A tab with a trace that is no file. */
function open(app: JupyterFrontEnd, { name, data }: TraceDetail): void {
  const content = new Viewer();
  content.show(new Blob([data]), name);
  const tab = new MainAreaWidget({ content });
  tab.id = `kernel-workbench-trace-${(opened += 1)}`;
  Object.assign(tab.title, { label: name, caption: `Profiler trace ${name}`, icon, closable: true });
  app.shell.add(tab, "main");
  app.shell.activateById(tab.id);
}

class Viewer extends Widget {
  private url = "";

  constructor() {
    super();
    this.addClass("kw-trace");
  }

  /** The data reach the viewer as a blob of this page's own origin. */
  show(data: Blob, name: string): void {
    URL.revokeObjectURL(this.url);
    this.url = URL.createObjectURL(data);
    const dark = document.body.dataset["jpThemeLight"] === "false";
    // speedscope reads its look from here; it can't know JupyterLab's theme.
    localStorage.setItem("speedscope-color-scheme", dark ? "DARK" : "LIGHT");
    const frame = h("iframe", {
      src: `${kernelWorkbench.base}speedscope/index.html#profileURL=${encodeURIComponent(this.url)}&title=${encodeURIComponent(name)}`,
      title: `Profiler trace ${name}`,
      sandbox: "allow-scripts allow-same-origin allow-downloads",
    });
    this.node.replaceChildren(frame);
  }

  override dispose(): void {
    URL.revokeObjectURL(this.url);
    super.dispose();
  }
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const made = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) made[at] = text.charCodeAt(at);
  return made;
}

/** Profiler traces in a tab: speedscope (MIT), served with the extension, reads them in this browser. Nothing leaves the machine. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { MainAreaWidget, Notification } from "@jupyterlab/apputils";
import type { ICommandPalette } from "@jupyterlab/apputils";
import { Widget } from "@lumino/widgets";
import { h } from "../../board/src/dom";
import { TRACE } from "../../bridge";
import type { TraceDetail } from "../../bridge";
import { CATEGORY } from "./commands";
import { icon } from "./icon";

const TYPE = "kernel-workbench-trace";
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
  const selected = (): string[] => {
    const browser = document.querySelectorAll<HTMLElement>(`.jp-DirListing-item.jp-mod-selected[data-file-type="${TYPE}"]`);
    return [...browser].map((item) => item.title.match(/^Path: (.+)$/m)?.[1] ?? "").filter(Boolean);
  };
  app.commands.addCommand(COMMAND, {
    label: "Open Profiler Trace",
    caption: "Shows a Chrome trace (.json or .json.gz) in a tab; nothing is sent anywhere",
    icon,
    describedBy: { args: { type: "object", properties: { path: { type: "string" } } } },
    execute: async (args) => {
      const paths = typeof args["path"] === "string" ? [args["path"]] : selected();
      if (!paths.length) Notification.info("Choose a trace (….trace.json or ….trace.json.gz) in the file browser first.");
      for (const path of paths) {
        const { name, content } = await app.serviceManager.contents.get(path, { content: true, format: "base64", type: "file" });
        open(app, { name, data: bytes(content) });
      }
    },
  });
  palette?.addItem({ command: COMMAND, category: CATEGORY });
  document.addEventListener(TRACE, (event) => {
    event.preventDefault();
    open(app, (event as CustomEvent<TraceDetail>).detail);
  });
}

/** A tab with the trace. Its data reach the viewer as a blob of this page's own origin. */
function open(app: JupyterFrontEnd, { name, data }: TraceDetail): void {
  const url = URL.createObjectURL(new Blob([data]));
  const content = new Viewer(url, name);
  const tab = new MainAreaWidget({ content });
  tab.id = `kernel-workbench-trace-${(opened += 1)}`;
  Object.assign(tab.title, { label: name, caption: `Profiler trace ${name}`, icon, closable: true });
  app.shell.add(tab, "main");
  app.shell.activateById(tab.id);
}

class Viewer extends Widget {
  constructor(
    private readonly url: string,
    name: string,
  ) {
    super();
    this.addClass("kw-trace");
    const viewer = `${kernelWorkbench.base}speedscope/index.html`;
    const dark = document.body.dataset["jpThemeLight"] === "false";
    this.node.append(
      h("iframe", {
        src: `${viewer}#profileURL=${encodeURIComponent(url)}&title=${encodeURIComponent(name)}`,
        title: `Profiler trace ${name}`,
        sandbox: "allow-scripts allow-same-origin allow-downloads",
        style: `color-scheme: ${dark ? "dark" : "light"}`,
      }),
    );
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

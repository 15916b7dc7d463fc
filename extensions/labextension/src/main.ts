/** The extension: comfort for JupyterLab and Notebook 7. Everything it does can also be done by the board, a magic or Python. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { h } from "../../board/src/dom";
import { bridgeAccepts } from "./accept";
import { CATEGORY, addCommands } from "./commands";
import { icon } from "./icon";
import { RunsPanel } from "./panel";
import styles from "./styles.css";
import { addTraces } from "./trace";

export { mimeExtension } from "./record";

export const extension: JupyterFrontEndPlugin<void> = {
  id: "kernel-workbench:plugin",
  description: "A button on each cell, commands, accepted kernels, saved runs and traces.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette],
  activate(app: JupyterFrontEnd, notebooks: INotebookTracker, palette: ICommandPalette | null): void {
    document.head.append(h("style", {}, styles));
    addCommands(app, notebooks, palette);
    addTraces(app, palette);
    bridgeAccepts(notebooks);
    const runs = new RunsPanel(app, notebooks);
    app.shell.add(runs, "left", { rank: 700 });
    app.commands.addCommand("kernel-workbench:open-runs", {
      label: "Show Runs",
      caption: "The runs of this notebook and of the store beside it",
      icon,
      describedBy: { args: { type: "object", properties: {} } },
      execute: () => app.shell.activateById(runs.id),
    });
    palette?.addItem({ command: "kernel-workbench:open-runs", category: CATEGORY });
  },
};

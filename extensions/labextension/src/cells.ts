/** `%%evolve_kernel` on top of a cell, as one undo step and with the cursor where it was. Nothing is run. */

import { Notification } from "@jupyterlab/apputils";
import type { Cell, NotebookPanel } from "@jupyterlab/notebook";
import type { SharedNotebook } from "jupyterlab-parts";
import { boardOf, goTo } from "./boards";

const MAGIC = "%%evolve_kernel";
/** Without a time, JupyterLab keeps a notification but shows nothing. */
const SHOWN = { autoClose: 8000 };
const LOADS = /^\s*%(?:load|reload)_ext\s+workbench\b/m;

/** Wraps the cell, or goes to its board if it has one. */
export async function evolve(panel: NotebookPanel, cell: Cell): Promise<void> {
  const board = boardOf(cell);
  if (board) return goTo(panel, cell, board);
  const source = cell.model.sharedModel.getSource();
  if (!source.trim()) {
    Notification.info("This cell is empty. Define an op in it and call it, then press the button again.", SHOWN);
    return;
  }
  const other = /^\s*(%%\S+)/.exec(source)?.[1];
  if (other === MAGIC) {
    Notification.info("Run this cell (Shift+Enter) to begin: its board appears below it.", SHOWN);
  } else if (other) {
    Notification.warning(`This cell begins with ${other}. A cell takes one such line: remove it first.`, SHOWN);
  } else {
    wrap(cell);
    const notebook = panel.content.model?.sharedModel;
    if (notebook && !notebook.cells.some((one) => LOADS.test(one.getSource()))) offerToLoad(notebook, cell);
  }
}

function wrap(cell: Cell): void {
  const { sharedModel } = cell.model;
  const cursor = cell.editor?.getCursorPosition();
  sharedModel.undoManager?.stopCapturing();
  sharedModel.updateSource(0, 0, `${MAGIC}\n`);
  sharedModel.undoManager?.stopCapturing();
  if (cursor) cell.editor?.setCursorPosition({ line: cursor.line + 1, column: cursor.column });
}

/** The magic is known only once the extension of IPython is loaded, so somebody has to load it. */
function offerToLoad(notebook: SharedNotebook, cell: Cell): void {
  Notification.info("No cell of this notebook loads the workbench.", {
    autoClose: 15000,
    actions: [
      {
        label: "Add %load_ext workbench above",
        caption: "A new cell above this one. Nothing is run.",
        callback: () => {
          const at = notebook.cells.findIndex((one) => one.getId() === cell.model.id);
          notebook.insertCell(Math.max(0, at), { cell_type: "code", source: "%load_ext workbench" });
        },
      },
    ],
  });
}

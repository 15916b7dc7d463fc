/**
 * The bridge from the board's Accept into the notebook.
 *
 * The board says what it wants by a DOM event; this browser, in whose page the click happened, is the only one to do it. The change is
 * compare-and-swap: if the cell is no longer what the person saw, nothing is written and the person decides with all texts before them.
 */

import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { applyTo } from "../../board/src/notebook";
import type { Change, Outcome } from "../../board/src/notebook";
import { sha256 } from "../../board/src/sha256";
import { APPLY } from "../../bridge";
import type { ApplyDetail } from "../../bridge";
import { askAboutConflict } from "./conflict";

export function bridgeAccepts(notebooks: INotebookTracker): void {
  document.addEventListener(APPLY, (event) => {
    const detail = (event as CustomEvent<ApplyDetail>).detail;
    const panel = panelOf(notebooks, event.target as Node, detail.change);
    if (!panel) return;
    event.preventDefault();
    const refused = (error: unknown): Outcome => ({ kind: "unreachable", reason: `the notebook refused the change (${String(error)})` });
    detail.outcome = settle(panel, detail.change, detail.base).catch(refused);
  });
}

/** The notebook that the board stands in; for a board in a window of its own, the one that has its cell. */
function panelOf(notebooks: INotebookTracker, from: Node, change: Change): NotebookPanel | undefined {
  const around = notebooks.find((panel) => panel.node.contains(from));
  const has = (panel: NotebookPanel): boolean =>
    (panel.content.model?.sharedModel.cells ?? []).some((cell) => cell.getId() === change.cell) && shows(panel, change.widget);
  return around ?? (change.cell ? notebooks.find(has) : undefined);
}

function shows(panel: NotebookPanel, widget: string): boolean {
  return panel.content.widgets.some((cell) => JSON.stringify(cell.outputArea?.model.toJSON() ?? []).includes(widget));
}

async function settle(panel: NotebookPanel, change: Change, base: string): Promise<Outcome> {
  const notebook = panel.content.model?.sharedModel;
  if (!notebook) return { kind: "unreachable", reason: "the notebook is not open any more" };
  if (panel.content.model?.readOnly) return { kind: "unreachable", reason: "this notebook is read-only" };
  let wanted = change;
  for (;;) {
    const outcome = applyTo(notebook, wanted);
    if (outcome.kind === "applied") await show(panel, outcome.cell, wanted.place === "below");
    if (outcome.kind !== "changed") return outcome;
    const answer = await askAboutConflict(base, outcome.now, change.code);
    if (answer === "leave") return outcome;
    // "Replace" consents to the text that the dialog showed and to no other: if it changed once more, the person is asked once more.
    wanted = answer === "below" ? { ...change, place: "below" } : { ...change, expected: sha256(outcome.now) };
  }
}

/** Brings the changed cell into sight; a new one becomes the active cell. It is not run. */
async function show(panel: NotebookPanel, id: string, activate: boolean): Promise<void> {
  // A new cell's widget is made after its model.
  await new Promise((made) => setTimeout(made, 0));
  const at = panel.content.widgets.findIndex((cell) => cell.model.id === id);
  if (at < 0) return;
  if (activate) panel.content.activeCellIndex = at;
  await panel.content.scrollToItem?.(at, "auto");
}

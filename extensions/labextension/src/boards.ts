/** The boards that stand in a notebook, found by their elements. A press on a board's own button is a command to its run. */

import type { Cell, NotebookPanel } from "@jupyterlab/notebook";

export type Pressed = { kind: "pressed" } | { kind: "refused"; reason: string } | { kind: "none" };

/** The live board in a cell's output; a saved record's does not count. It is found even while the notebook has scrolled it away. */
export function boardOf(cell: Cell): HTMLElement | null {
  const boards = cell.outputArea?.node.querySelectorAll<HTMLElement>(".kw-board") ?? [];
  return [...boards].find((board) => !board.closest(".kw-record")) ?? null;
}

/** The board that a command means: the active cell's, else the next one above, else the first below. */
export function boardIn(panel: NotebookPanel): HTMLElement | null {
  const cells = panel.content.widgets;
  const at = panel.content.activeCellIndex;
  for (const cell of [...cells.slice(0, at + 1).reverse(), ...cells.slice(at + 1)]) {
    const board = boardOf(cell);
    if (board) return board;
  }
  return null;
}

/** Presses the board's button of that verb; where the button is off, its tooltip says why. */
export function press(board: HTMLElement | null, verb: string): Pressed {
  const control = board?.querySelector<HTMLButtonElement>(`[data-verb="${verb}"]`);
  if (!control) return { kind: "none" };
  if (control.disabled || control.hidden) return { kind: "refused", reason: control.title || `${verb} means nothing now.` };
  control.click();
  return { kind: "pressed" };
}

/** Brings a cell's board into sight. */
export async function goTo(panel: NotebookPanel, cell: Cell, board: HTMLElement): Promise<void> {
  await panel.content.scrollToItem?.(panel.content.widgets.indexOf(cell), "smart");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  board.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
  (board.querySelector<HTMLElement>("[data-verb]:not(:disabled)") ?? board).focus({ preventScroll: true });
}

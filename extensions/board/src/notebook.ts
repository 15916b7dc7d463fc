/**
 * Changing the notebook that the board stands in, in this browser alone.
 *
 * JupyterLab and Notebook 7 hand a widget their document model through its manager. That is no promise of theirs, so every step is
 * checked, and where it is missing the caller goes down the ladder. A cell is never run from here.
 */

import type { Json, Place } from "../../protocol";
import { edit } from "./edits";
import type { Model } from "./model";
import { sha256 } from "./sha256";

interface SharedCell {
  readonly id?: string;
  getId?(): string;
  getSource(): string;
  updateSource(start: number, end: number, text: string): void;
  setMetadata(metadata: Record<string, Json> | string, value?: Json): void;
  getOutputs?(): unknown[];
  undoManager?: { stopCapturing(): void } | null;
}

export interface SharedNotebook {
  readonly cells: readonly SharedCell[];
  insertCell(index: number, cell: Record<string, unknown>): SharedCell;
  undoManager?: { stopCapturing(): void } | null;
}

export interface Change {
  code: string;
  place: Place;
  /** The nbformat id of the cell that the run came from; empty where nobody knows. */
  cell: string;
  /** SHA-256 that the cell's source must have; empty for no check. */
  expected: string;
  provenance: Record<string, Json>;
  /** The widget's own model id, to find the cell that shows the board. */
  widget: string;
}

export type Outcome =
  | { kind: "applied"; cell: string; before: string; after: string }
  | { kind: "changed"; now: string; before: string }
  | { kind: "unreachable"; reason: string };

/** What the run's cell holds now; null where the notebook can't be reached or the cell is gone. */
export function cellNow(model: Model, cell: string): string | null {
  const notebook = reach(model);
  const found = notebook && cell ? notebook.cells.find((one) => idOf(one) === cell) : undefined;
  return found ? found.getSource() : null;
}

export function canReach(model: Model): boolean {
  return reach(model) !== null;
}

export function apply(model: Model, change: Change): Outcome {
  const notebook = reach(model);
  if (!notebook) return { kind: "unreachable", reason: "this front end does not let a widget change its notebook" };
  return applyTo(notebook, change);
}

/** The same for a notebook at hand: the JupyterLab extension has it from JupyterLab itself. */
export function applyTo(notebook: SharedNotebook, change: Change): Outcome {
  try {
    return change.place === "replace" ? replace(notebook, change) : below(notebook, change);
  } catch (error) {
    return { kind: "unreachable", reason: `the notebook refused the change (${String(error)})` };
  }
}

function below(notebook: SharedNotebook, change: Change): Outcome {
  let at = change.cell ? notebook.cells.findIndex((cell) => idOf(cell) === change.cell) : -1;
  if (at < 0) at = notebook.cells.findIndex((cell) => shows(cell, change.widget));
  if (at < 0) return { kind: "unreachable", reason: "the cell of this run is no longer in the notebook" };
  notebook.undoManager?.stopCapturing();
  const after = sha256(change.code);
  const made = notebook.insertCell(at + 1, {
    cell_type: "code",
    source: change.code,
    metadata: { workbench: { ...change.provenance, source_sha256: after } },
  });
  notebook.undoManager?.stopCapturing();
  return { kind: "applied", cell: idOf(made), before: "", after };
}

function replace(notebook: SharedNotebook, change: Change): Outcome {
  const cell = notebook.cells.find((one) => idOf(one) === change.cell);
  if (!cell) return { kind: "unreachable", reason: "the cell of this run is no longer in the notebook" };
  const now = cell.getSource();
  const before = sha256(now);
  // Without a hash nobody knows what the cell held when the run began, so nothing that stands in it is overwritten.
  if (before !== change.expected) return { kind: "changed", now, before };
  cell.undoManager?.stopCapturing();
  const { start, end, text } = edit(now, change.code);
  cell.updateSource(start, end, text);
  cell.undoManager?.stopCapturing();
  const after = sha256(change.code);
  cell.setMetadata("workbench", { ...change.provenance, source_sha256: after });
  return { kind: "applied", cell: change.cell, before, after };
}

/** The shared document, with everything in place that is used of it. */
function reach(model: Model): SharedNotebook | null {
  const manager = model.widget_manager as { context?: { model?: { sharedModel?: Partial<SharedNotebook> } } } | undefined;
  const notebook = manager?.context?.model?.sharedModel;
  if (!notebook || !Array.isArray(notebook.cells) || typeof notebook.insertCell !== "function") return null;
  return notebook as SharedNotebook;
}

function idOf(cell: SharedCell): string {
  return cell.getId?.() ?? cell.id ?? "";
}

function shows(cell: SharedCell, widget: string): boolean {
  return widget !== "" && JSON.stringify(cell.getOutputs?.() ?? []).includes(widget);
}

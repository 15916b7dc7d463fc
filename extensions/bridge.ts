/**
 * How the board speaks to the JupyterLab extension: DOM events that bubble from the board's element to the document.
 *
 * The board says what it wants; the extension, where there is one, claims the event (`preventDefault`) and does it. Where nobody claims
 * it the board goes on by itself, so the extension adds comfort and never function.
 */

import type { Change, Outcome } from "./board/src/notebook";

/** "Put this code into the notebook." */
export const APPLY = "kernel-workbench:apply";
/** "Show this profiler trace." */
export const TRACE = "kernel-workbench:trace";

/** The mime type of a run that was saved with its notebook. */
export const RECORD = "application/vnd.kernel-workbench.run.v1+json";

export interface ApplyDetail {
  change: Change;
  /** What the cell held when the run began, for the person to compare. */
  base: string;
  /** Set by whoever claims the event. It may take as long as a person takes to answer a question. */
  outcome?: Promise<Outcome>;
}

export interface TraceDetail {
  /** A file name that tells the format: `….json` or `….json.gz`. */
  name: string;
  data: BlobPart;
}

/** Asks whoever listens to change the notebook; null where nobody does. */
export function offerChange(from: Element, change: Change, base: string): Promise<Outcome> | null {
  const detail: ApplyDetail = { change, base };
  return claimed(from, APPLY, detail) ? (detail.outcome ?? null) : null;
}

/** Asks whoever listens to show a trace; false where nobody does. */
export function offerTrace(from: Element, name: string, data: BlobPart): boolean {
  const detail: TraceDetail = { name, data };
  return claimed(from, TRACE, detail);
}

function claimed(from: Element, type: string, detail: unknown): boolean {
  return !from.dispatchEvent(new CustomEvent(type, { bubbles: true, composed: true, cancelable: true, detail }));
}

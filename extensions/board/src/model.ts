/** The part of anywidget's model that the board uses. */

import type { FromBrowser, FromPython } from "../../protocol";
import type * as CodeMirror from "./codemirror";

/** Bytes travel beside a message. */
type Listener = (content: FromPython, buffers?: DataView[]) => void;

export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: FromBrowser): void;
  on(event: "msg:custom", listener: Listener): void;
  off(event: "msg:custom", listener: Listener): void;
  on(event: `change:${string}`, listener: () => void): void;
  off(event: `change:${string}`, listener: () => void): void;
  widget_manager?: unknown;
  /** The editors, where whoever shows the board has them; else they are asked of Python. */
  editors?(): Promise<typeof CodeMirror>;
}

/** Verbs to Python, each with an id of its own, so that the answer finds the view that asked. */

import type { SaidMessage, Verb } from "../../protocol";
import type { Store } from "./store";

/** How long an answer may take, in ms, before the person is told why it may not have come. */
const PATIENCE = 2000;
const LATE = "The kernel has not answered yet. Some kernels hear a click only when the running cell has ended; it is not lost.";

export type Say = (text: string, level: SaidMessage["level"]) => void;

export function newRequest(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends a verb; `say` gets Python's one-line answer. */
export function act(store: Store, verb: Verb, argument: string, say: Say, option = ""): void {
  const request = newRequest();
  const late = setTimeout(() => say(LATE, "info"), PATIENCE);
  store.hear(request, (message) => {
    clearTimeout(late);
    if (message.type === "said") say(message.text, message.level);
  });
  store.model.send({ type: "do", request, verb, argument, option });
}

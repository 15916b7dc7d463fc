/** Verbs to Python, each with an id of its own, so that the answer finds the view that asked. */

import type { SaidMessage, Verb } from "../../protocol";
import type { Store } from "./store";

export type Say = (text: string, level: SaidMessage["level"]) => void;

export function newRequest(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends a verb; `say` gets Python's one-line answer. */
export function act(store: Store, verb: Verb, argument: string, say: Say, option = ""): void {
  const request = newRequest();
  store.hear(request, (message) => {
    if (message.type === "said") say(message.text, message.level);
  });
  store.model.send({ type: "do", request, verb, argument, option });
}

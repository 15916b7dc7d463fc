/** What the state of a run means for what can be done with it. */

import type { Header } from "../../protocol";

export const NOT_RUNNING = "This run is read from the store and no judge is running. Resume starts one and goes on.";

/** A run that was left unfinished by an earlier process, or is looked at only. */
export function isStored(header: Header): boolean {
  return !header.live && header.state !== "ended";
}

/** Why nobody would hear a verb now; empty where the run is there to hear it. */
export function unheard(header: Header | null): string {
  if (!header) return "The run has not been read yet.";
  if (header.state === "ended") return `The run has ended${header.reason ? `: ${header.reason}` : ""}. Resume goes on with it.`;
  return header.live ? "" : NOT_RUNNING;
}

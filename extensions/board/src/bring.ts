/**
 * Where the editors come from.
 *
 * CodeMirror is more than half of what the board needs, and its first screen shows none of it. So it is a module of its own, which a
 * board asks of its kernel when that screen stands: no other host is asked, and where nobody answers the plain views of `plain.ts` stay.
 * All boards of a page share one; each has a module of its own otherwise, so what they share hangs on the page.
 */

import type * as CodeMirror from "./codemirror";
import { newRequest } from "./requests";
import type { Store } from "./store";

export type Editors = typeof CodeMirror;

/** How long an answer may take, in ms, before a board asks again, or asks its own kernel where another board has asked another. */
const PATIENCE = 3000;
/** How often a board asks: a kernel that is busy answers each of them when it is free. The waits between grow tenfold. */
const TRIES = 3;

interface Shelf {
  module: Promise<Editors>;
  put(module: Editors): void;
  /** When somebody asked last. */
  asked: number;
}

let here: Editors | null = null;
let failure = "";
let begun = false;
const waiting = new Set<() => void>();

/** The editors, once they are here. */
export const editors = (): Editors | null => here;

/** Why there are none, where it is known that there will be none. */
export const missingBecause = (): string => failure;

/** Calls `act` when the editors have come, or are known not to come, unless the signal has ended before. */
export function whenSettled(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) return;
  waiting.add(act);
  signal.addEventListener("abort", () => waiting.delete(act));
}

/** Sees to it that the editors come. */
export function bring(store: Store, signal: AbortSignal, tries = 0): void {
  if (here || failure || signal.aborted) return;
  const own = store.model.editors;
  const place = shelf();
  if (!begun) (own ? own() : place.module).then(arrive, fail);
  begun = true;
  if (own) return;
  const again = (after: number, then: number): void => {
    const timer = setTimeout(() => bring(store, signal, then), after);
    signal.addEventListener("abort", () => clearTimeout(timer));
  };
  const since = performance.now() - place.asked;
  if (tries === 0 && since < PATIENCE) {
    again(PATIENCE - since, tries);
    return;
  }
  place.asked = performance.now();
  ask(store, place);
  if (tries + 1 < TRIES) again(PATIENCE * 10 ** tries, tries + 1);
}

function ask(store: Store, place: Shelf): void {
  const request = newRequest();
  store.hear(request, (message, buffers) => {
    if (here || message.type !== "editors") return;
    const bytes = buffers[0];
    if (bytes) load(bytes).then(place.put, fail);
    else fail(message.error);
  });
  store.model.send({ type: "editors", request, hash: EDITORS });
}

/** A module from its bytes, as anywidget makes the board's own. */
async function load(bytes: DataView): Promise<Editors> {
  const url = URL.createObjectURL(new Blob([bytes as DataView<ArrayBuffer>], { type: "text/javascript" }));
  try {
    return (await import(url)) as Editors;
  } finally {
    URL.revokeObjectURL(url);
  }
}

function arrive(module: Editors): void {
  here = module;
  settle();
}

function fail(reason: unknown): void {
  failure = reason instanceof Error ? `this page does not load them (${reason.message})` : String(reason);
  settle();
}

function settle(): void {
  const all = [...waiting];
  if (here) waiting.clear();
  for (const act of all) act();
}

function shelf(): Shelf {
  const page = globalThis as Record<symbol, unknown>;
  const name = Symbol.for(`kernel-workbench editors ${EDITORS}`);
  const found = page[name] as Shelf | undefined;
  if (found) return found;
  let put!: Shelf["put"];
  const module = new Promise<Editors>((done) => (put = done));
  const made: Shelf = { module, put, asked: -Infinity };
  page[name] = made;
  return made;
}

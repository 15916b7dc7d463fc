/**
 * Code in front of a person: by the editors where they have come, plain until then. What stands plain is replaced in its place as soon as
 * they are here, with what was typed and scrolled; where they can't be had it stays, and says why.
 */

import { editors, missingBecause, whenSettled } from "./bring";
import type { Editors } from "./bring";
import type { Language, Linked } from "./codemirror";
import { h } from "./dom";
import { plainCode, plainDiff, plainEdit, plainLinked } from "./plain";
import type { Place, Plain } from "./plain";

/** Shows a text. The signal ends it. */
export function showCode(parent: Element, text: string, label: string, signal: AbortSignal): void {
  stand(parent, () => plainCode(text, label), (made, _, place) => made.showCode(parent, text, label, signal, place), signal);
}

/** Shows a text to be edited; `changed` gets it after each edit. */
export function editCode(parent: Element, text: string, label: string, changed: (text: string) => void, signal: AbortSignal): void {
  stand(
    parent,
    () => plainEdit(text, label, changed),
    (made, plain, place) => made.editCode(parent, plain ? plain.text() : text, label, changed, signal, place),
    signal,
  );
}

/** Compares two texts. */
export function showDiff(parent: HTMLElement, old: string, now: string, labels: [string, string], signal: AbortSignal, language: Language = "python"): void {
  stand(
    parent,
    () => plainDiff(old, now, `${labels[1]} against ${labels[0]}`),
    (made, _, place) => made.showDiff(parent, old, now, labels, signal, language, place),
    signal,
  );
}

/** Shows a text whose lines are linked with another's, see `codemirror.ts`. */
export function showLinked(
  parent: Element, text: string, label: string, language: Language, meant: (line: number, kept: boolean) => void, signal: AbortSignal,
): Linked {
  let now: Linked | null = null;
  let lit: readonly [number, number][] = [];
  stand(
    parent,
    () => (now = plainLinked(text, label, meant)),
    (made, plain, place) => {
      now = made.showLinked(parent, text, label, language, meant, signal, place, plain?.at());
      if (lit.length) now.light(lit, false);
    },
    signal,
  );
  return {
    light(ranges, reveal) {
      lit = ranges;
      now?.light(ranges, reveal);
    },
  };
}

/** Shows it by the editors, or plain until they come and nobody holds it. */
function stand<P extends Plain>(
  parent: Element, plainly: () => P, well: (made: Editors, plain: P | null, place: Place | undefined) => void, signal: AbortSignal,
): void {
  const found = editors();
  if (found) {
    well(found, null, undefined);
    return;
  }
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort());
  const plain = plainly();
  const why = h("p", { class: "kw-plain-why", hidden: true });
  parent.append(why, plain.element);
  const settle = (): void => {
    const made = editors();
    why.textContent = missingBecause() && `Plain text, since the editors can't be had: ${missingBecause()}`;
    why.hidden = made !== null || !why.textContent;
    if (!made || plain.held() || life.signal.aborted) return;
    life.abort();
    const place = plain.place();
    why.remove();
    plain.element.remove();
    well(made, plain, place);
  };
  whenSettled(life.signal, settle);
  document.addEventListener("selectionchange", settle, { signal: life.signal });
  plain.element.addEventListener("compositionend", () => setTimeout(settle), { signal: life.signal });
  if (missingBecause()) settle();
}

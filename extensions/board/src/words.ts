/** The words of the board for those who can't hover: the same explanations, to be opened. */

import { h } from "./dom";
import { WORDS } from "./glossary";
import type { Word } from "./glossary";

const LISTED: Word[] = [
  "best", "floor", "eager", "compile", "modelled", "measured", "verdict", "judged", "witness", "island", "lineage", "headroom",
  "budget", "step", "auto", "pause", "resume", "stop", "cancel", "hint", "ban", "pin", "branch", "registers", "spills", "shared",
  "occupancy", "waves", "vector",
];

export function words(): HTMLElement {
  return h("details", { class: "kw-words" }, h("summary", {}, "Words used here"), h("ul", {}, ...LISTED.map((word) => h("li", {}, ...line(WORDS[word])))));
}

/** Puts the word that is explained in bold: what stands before the first colon, if it is short. */
function line(text: string): (HTMLElement | string)[] {
  const colon = text.indexOf(":");
  return colon > 0 && colon < 20 ? [h("b", {}, text.slice(0, colon)), text.slice(colon)] : [text];
}

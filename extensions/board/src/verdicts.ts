/** Verdicts as people see them: an icon, a word and a tone. Never by colour alone. */

import { s } from "./dom";
import type { Row } from "../../protocol";

export type AnyVerdict = Row["verdict"];
export type Tone = "good" | "fair" | "bad" | "none";

interface Look {
  word: string;
  tone: Tone;
  /** SVG path on a 12×12 field, drawn with a stroke. */
  path: string;
  means: string;
}

export const VERDICTS: Record<AnyVerdict, Look> = {
  right: { word: "right", tone: "good", path: "M2 6.5 4.8 9.3 10 3.2", means: "Within the reference's own error on every input set." },
  lower_precision: {
    word: "lower precision",
    tone: "fair",
    path: "M2 4.6c1.6-1.8 2.6-1.8 4 0s2.4 1.8 4 0M2 8.4c1.6-1.8 2.6-1.8 4 0s2.4 1.8 4 0",
    means: "Right, with the round-off of a coarser type. It can be accepted with your consent.",
  },
  wrong: { word: "wrong", tone: "bad", path: "M3 3l6 6M9 3 3 9", means: "The result differs from the reference; a witness shows where." },
  refused: { word: "refused", tone: "bad", path: "M6 1.5a4.5 4.5 0 1 0 .01 0M2.9 2.9l6.2 6.2", means: "It tampers with its judging, or is unsafe." },
  crashed: { word: "crashed", tone: "bad", path: "M7 1 3 7h3l-1 4 4-6H6z", means: "The worker died, or the launcher raised." },
  timed_out: { word: "timed out", tone: "bad", path: "M6 1.5a4.5 4.5 0 1 0 .01 0M6 3.5V6l2 1.5", means: "It did not finish in its time." },
  does_not_build: { word: "does not build", tone: "bad", path: "M1.5 10.5h4v-4h4v-4M1.5 6.5h1M9.5 10.5v-1", means: "The compiler refuses it; see Log." },
  time_not_confirmed: {
    word: "time not confirmed",
    tone: "fair",
    path: "M4 4.2A2.1 2.1 0 1 1 6 6.6v1M6 9.6v.6",
    means: "Right, but the clocks disagree or the time is faster than physics.",
  },
  not_judged: { word: "not judged", tone: "none", path: "M2.5 6h7", means: "It could not be run here. The reason says why; it is no fault of the variant." },
  proposed: { word: "being judged", tone: "none", path: "M2.5 6h.01M6 6h.01M9.5 6h.01", means: "The judge has not spoken yet." },
};

export const ORDER: AnyVerdict[] = Object.keys(VERDICTS) as AnyVerdict[];

/** Ranks verdicts for sorting: best first. */
export function rank(verdict: AnyVerdict): number {
  return ORDER.indexOf(verdict);
}

export function passes(verdict: AnyVerdict): boolean {
  return verdict === "right";
}

export function icon(verdict: AnyVerdict): SVGSVGElement {
  return s(
    "svg",
    { class: "kw-icon", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" },
    s("path", { d: VERDICTS[verdict].path }),
  );
}

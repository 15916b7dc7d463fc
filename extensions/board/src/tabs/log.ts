/** What the variant printed or the compiler said (untrusted text), how long each stage took, and what happened in the run. */

import type { Evaluation } from "../../../protocol";
import { h } from "../dom";
import * as format from "../format";
import type { Tab } from "../inspector";
import type { Store } from "../store";

const SHOWN = 400;

export const logTab: Tab = (panel, detail, store) => {
  const last = detail.evaluations.at(-1);
  const output = [...detail.evaluations].reverse().find((evaluation) => evaluation.log)?.log ?? "";
  panel.append(
    h("h4", { class: "kw-h" }, `Output of ${detail.row.id}`),
    output
      ? h("pre", { class: "kw-pre", tabindex: 0 }, output)
      : h("p", { class: "kw-empty" }, last ? "Neither the compiler nor the variant had anything to say." : "It has not been judged yet."),
    ...(last ? stages(last) : []),
    ...runLog(store, detail.row.id),
  );
};

/** What happened in the run, the latest first; lines about variant `own` stand out. */
export function runLog(store: Store, own: string): HTMLElement[] {
  const lines = store.log.slice(-SHOWN).reverse();
  return [
    h("h4", { class: "kw-h" }, "The run"),
    h(
      "ol",
      { class: "kw-log", reversed: true },
      ...lines.map((line) =>
        h("li", { class: `kw-log-${line.level}${own && line.candidate === own ? " kw-log-own" : ""}` },
          h("time", {}, format.clock(line.time)), h("span", {}, line.level === "warning" ? `warning: ${line.text}` : line.text)),
      ),
    ),
    ...(lines.length ? [] : [h("p", { class: "kw-empty" }, "Nothing has happened yet.")]),
  ];
}

function stages(evaluation: Evaluation): HTMLElement[] {
  const entries = Object.entries(evaluation.stage_ms);
  if (!entries.length) return [];
  const total = entries.reduce((sum, [, ms]) => sum + ms, 0);
  return [
    h("h4", { class: "kw-h" }, `Where the judge's ${format.duration(total / 1000)} went`),
    h(
      "dl",
      { class: "kw-stages" },
      ...entries.flatMap(([name, ms]) => [
        h("dt", {}, name),
        h("dd", {}, h("span", { class: "kw-bar" }, h("span", { class: "kw-bar-fill kw-bar-plain", style: `width:${total ? (ms / total) * 100 : 0}%` })), ` ${format.figure(ms)} ms`),
      ]),
    ),
  ];
}

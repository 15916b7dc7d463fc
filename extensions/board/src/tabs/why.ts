/** Why a variant came out as it did: verdict, witness, diagnosis, where its time goes, what it takes, every point tried. */

import type { Detail, Diagnosis, Evaluation, Witness } from "../../../protocol";
import { h, missing } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";
import type { Tab } from "../inspector";
import type { Store } from "../store";
import { VERDICTS, icon } from "../verdicts";
import { evaluations, resources } from "./tables";
import { timeBreakdown } from "./roofline";

export const whyTab: Tab = (panel, detail, store) => {
  const shown = evaluationOf(detail);
  if (!shown) {
    panel.append(missing(`${detail.row.id} is being judged: build, sandbox, comparison on several input sets, then its time. This takes a moment.`), ...origin(detail));
    return;
  }
  const diagnosis = detail.diagnoses[shown.id];
  panel.append(
    ...verdict(shown),
    ...(shown.witness ? witness(shown.witness) : []),
    ...(diagnosis ? diagnosed(diagnosis) : []),
    ...timeBreakdown(shown, store.header),
    ...resources(shown),
    ...origin(detail),
    ...evaluations(detail, shown.id),
    ...environment(shown, store),
  );
};

function evaluationOf(detail: Detail): Evaluation | undefined {
  return detail.evaluations.find((evaluation) => evaluation.id === detail.shown) ?? detail.evaluations.at(-1);
}

function verdict(evaluation: Evaluation): HTMLElement[] {
  const look = VERDICTS[evaluation.verdict];
  const facts: string[] = [];
  if (evaluation.matched !== null) facts.push(`${format.percent(evaluation.matched)} of the elements within bounds`);
  if (evaluation.error_ratio !== null) facts.push(`worst error ${format.figure(format.number(evaluation.error_ratio))} of its bound`);
  if (evaluation.input_sets.length) facts.push(`${evaluation.input_sets.length} input sets`);
  facts.push(`${evaluation.mode} judging`);
  return [
    h(
      "div",
      { class: `kw-callout kw-callout-${look.tone}` },
      h("p", { class: "kw-lead" }, h("span", { class: `kw-verdict kw-${look.tone}` }, icon(evaluation.verdict), h("b", {}, look.word)), ` ${evaluation.reason || look.means}`),
      h("p", { class: "kw-dim", title: `${WORDS.judged}\nInput sets: ${evaluation.input_sets.join(", ")}` }, `Judged by ${evaluation.judged_by || "nobody"}: ${facts.join(", ")}.`),
      evaluation.labels.length > 0 && h("p", { class: "kw-labels" }, ...evaluation.labels.map((label) => h("span", { class: "kw-chip" }, label))),
    ),
  ];
}

function witness(found: Witness): HTMLElement[] {
  const [got, expected] = [format.number(found.got), format.number(found.expected)];
  const rows: [string, string][] = [
    ["input set", `${found.input_set}, seed ${found.seed}`],
    ["output", `number ${found.output}, at [${found.index.join(", ")}]`],
    ["got", format.float(found.got)],
    ["expected", format.float(found.expected)],
    ["difference", Number.isFinite(got - expected) ? format.float(Math.abs(got - expected)) : "–"],
    ["bound", format.float(found.bound)],
  ];
  return [
    h("h4", { class: "kw-h", title: WORDS.witness }, "Witness"),
    h("table", { class: "kw-facts" }, h("caption", { class: "kw-sr" }, "One place where the result differs"), h("tbody", {},
      ...rows.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "kw-mono" }, value))))),
    ...(found.pattern ? [h("p", {}, "Where the mismatches lie: ", h("b", {}, found.pattern), ".")] : []),
  ];
}

function diagnosed(diagnosis: Diagnosis): HTMLElement[] {
  return [
    h("h4", { class: "kw-h" }, `Diagnosis: ${diagnosis.kind}`),
    h("p", {}, diagnosis.summary),
    ...(diagnosis.evidence.length ? [h("ul", { class: "kw-evidence" }, ...diagnosis.evidence.map((line) => h("li", {}, line)))] : []),
    ...(diagnosis.directive ? [h("p", { class: "kw-next" }, h("b", {}, "Do next"), ` ${diagnosis.directive}`)] : []),
  ];
}

function origin(detail: Detail): HTMLElement[] {
  const { candidate, brief } = detail;
  const rows: [string, string][] = [["proposer", candidate.proposer], ["plan", candidate.plan], ["asked for", brief.directive]];
  if (Object.keys(candidate.recipe).length) rows.push(["recipe", format.parameters(candidate.recipe)]);
  if (candidate.cites.length) rows.push(["cites", candidate.cites.join(", ")]);
  if (detail.children.length) rows.push(["children", detail.children.join(", ")]);
  const filled = rows.filter(([, value]) => value);
  if (!filled.length) return [];
  return [
    h("h4", { class: "kw-h" }, `Where it comes from: ${brief.kind || "seed"}`),
    h("table", { class: "kw-facts" }, h("tbody", {}, ...filled.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))),
  ];
}

function environment(evaluation: Evaluation, store: Store): HTMLElement[] {
  const { environment: at } = evaluation;
  const parts = [at.gpu, at.torch && `torch ${at.torch}`, at.triton && `triton ${at.triton}`, at.python && `Python ${at.python}`, at.driver && `driver ${at.driver}`, at.sandbox && `sandbox: ${at.sandbox}`];
  const known = parts.filter(Boolean);
  if (!known.length) return [];
  const seed = evaluation.seed === null ? "" : ` Seed ${evaluation.seed}, so this judging can't be used to accept.`;
  return [h("p", { class: "kw-dim kw-environment" }, `Judged with ${known.join(", ")} for ${store.header?.target ?? ""}.${seed}`)];
}

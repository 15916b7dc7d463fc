/** Why a variant came out as it did: verdict, witness, diagnosis, where its time goes, what it takes, every point tried. */

import type { Detail, Diagnosis, Evaluation, Witness } from "../../../protocol";
import { h, missing, put } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";
import type { Tab } from "../inspector";
import type { Store } from "../store";
import { VERDICTS, icon } from "../verdicts";
import { changes } from "./changes";
import { evaluationOf, facts, heading } from "./parts";
import { marksOf, roofline } from "./roof";
import { evaluations, resources } from "./tables";
import { timeBreakdown } from "./time";

export const whyTab: Tab = (panel, detail, store, signal) => {
  const shown = evaluationOf(detail);
  if (!shown) {
    panel.append(missing(`${detail.row.id} is being judged: build, sandbox, comparison on several input sets, then its time. This takes a moment.`), ...origin(detail));
    return;
  }
  const parent = detail.candidate.parents[0] ?? "";
  const draw = (): void => {
    const of = parent ? store.detail(parent) : undefined;
    const diagnosis = detail.diagnoses[shown.id];
    const picture = roofline(marksOf(shown, of && evaluationOf(of), store.header), store.roof, store.header?.target ?? "");
    put(
      panel,
      ...verdict(shown),
      ...(shown.witness ? witness(shown.witness) : []),
      ...(diagnosis ? diagnosed(diagnosis) : []),
      ...timeBreakdown(shown, store.header),
      ...(picture ? [heading("Under the roof", shown.timing?.modelled === true && h("span", { class: "kw-modelled", title: WORDS.modelled }, "modelled")), picture] : []),
      ...changes(detail, of, store.failure(parent) || `Reading ${parent}…`),
      ...resources(shown),
      ...origin(detail),
      ...evaluations(detail, shown.id),
      ...environment(shown, store),
    );
  };
  // The parent comes by itself a moment later; then the picture and the comparison are drawn with it.
  let known = parent !== "" && store.detail(parent) !== undefined;
  store.on("detail", signal, () => {
    if (known || !parent || (!store.detail(parent) && !store.failure(parent))) return;
    known = true;
    const top = panel.scrollTop;
    draw();
    panel.scrollTop = top;
  });
  draw();
};

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
      h("p", { class: "kw-dim", title: `${WORDS.judged}\nInput sets: ${evaluation.input_sets.join(", ")}` }, evaluation.verdict === "not_judged" ? VERDICTS.not_judged.means : `Judged by ${evaluation.judged_by || "nobody"}: ${facts.join(", ")}.`),
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
    facts(rows.map(([name, value]) => [name, h("span", { class: "kw-mono" }, value)]), "One place where the result differs"),
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
  if (!rows.some(([, value]) => value)) return [];
  return [heading(`Where it comes from: ${brief.kind || "seed"}`), facts(rows)];
}

function environment(evaluation: Evaluation, store: Store): HTMLElement[] {
  const { environment: at } = evaluation;
  const parts = [at.gpu, at.torch && `torch ${at.torch}`, at.triton && `triton ${at.triton}`, at.python && `Python ${at.python}`, at.driver && `driver ${at.driver}`, at.sandbox && `sandbox: ${at.sandbox}`];
  const known = parts.filter(Boolean);
  if (!known.length) return [];
  const seed = evaluation.seed === null ? "" : ` Seed ${evaluation.seed}, so this judging can't be used to accept.`;
  return [h("p", { class: "kw-dim kw-environment" }, `Judged with ${known.join(", ")} for ${store.header?.target ?? ""}.${seed}`)];
}

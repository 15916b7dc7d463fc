/** What a verdict rests on, complete enough to judge it again: by whom, with which seeds, where, how exactly, and how long. */

import type { Detail, Evaluation, Header, Timing } from "../../../protocol";
import { copyButton } from "../clipboard";
import { h, missing, put, s } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";
import type { Tab } from "../inspector";
import { sha256 } from "../sha256";
import type { Store } from "../store";
import { VERDICTS, icon } from "../verdicts";
import { evaluationOf, facts, grid, heading, pickEvaluation } from "./parts";

export const evidenceTab: Tab = (panel, detail, store) => {
  const draw = (chosen: Evaluation | undefined): void => {
    if (!chosen) {
      put(panel, missing(`${detail.row.id} has not been judged yet, so there is no evidence. It comes with the verdict.`));
      return;
    }
    const pick = pickEvaluation(detail, chosen.id, (id) => draw(detail.evaluations.find((one) => one.id === id)));
    put(
      panel,
      pick && h("div", { class: "kw-bar-line" }, pick),
      ...judged(chosen),
      ...inputSets(chosen),
      ...timings(chosen, store.header),
      ...identity(detail, chosen, store),
      ...environment(chosen, store),
      ...replay(chosen, detail, store),
    );
  };
  draw(evaluationOf(detail));
};

function judged(one: Evaluation): HTMLElement[] {
  const look = VERDICTS[one.verdict];
  return [
    heading("Verdict"),
    h("p", {}, h("span", { class: `kw-verdict kw-${look.tone}` }, icon(one.verdict), h("b", {}, look.word)), ` ${one.reason || look.means}`),
    h("p", { class: "kw-dim" }, judge(one)),
    ...(one.labels.length ? [h("p", { class: "kw-labels" }, ...one.labels.map((label) => h("span", { class: "kw-chip" }, label)))] : []),
  ];
}

/** What the word of the judge stands on, in words. */
function judge(one: Evaluation): string {
  const by = one.judged_by;
  const mode = one.mode === "full" ? "Full judging: every input set and many timing blocks, as accept asks for." : "Quick judging: fewer input sets and timing blocks. Accept judges in full.";
  if (by.startsWith("gpu")) return `Judged by the GPU: the variant ran there, at the real shapes. ${mode}`;
  const shapes = /\((.*)\)/.exec(by)?.[1];
  if (by.startsWith("interpreter")) {
    return `Judged by interpreter${shapes ? ` (${shapes})` : ""}: there is no GPU here, so Triton's interpreter ran the variant on cut-down shapes${shapes ? `, those in brackets, one for each input` : ""}. They are chosen so that several programs and a partial tile occur. What is wrong only at the real shapes is not found; the real compiler built it for the real shapes, and its time is modelled from that. ${mode}`;
  }
  return by ? `Judged by ${by}. ${mode}` : "No judge has run it.";
}

function inputSets(one: Evaluation): HTMLElement[] {
  if (!one.input_sets.length) return [heading("Errors"), h("p", { class: "kw-dim" }, "It produced no output, so there was nothing to compare.")];
  const failed = one.witness?.input_set ?? "";
  const ratio = format.number(one.error_ratio);
  const rows = one.input_sets.map((name, index) => {
    const here = name === failed;
    const after = failed !== "" && index > one.input_sets.indexOf(failed);
    return h("tr", { class: here ? "kw-shown" : "" },
      h("th", { scope: "row" }, name),
      h("td", {}, h("span", { class: `kw-verdict kw-${here ? "bad" : after ? "none" : "good"}` }, icon(here ? "wrong" : after ? "not_judged" : "right"), h("span", {}, here ? "out of bounds, see the witness" : after ? "not needed any more" : "within bounds"))),
    );
  });
  return [
    heading("Errors, by input set"),
    grid([{ label: "input set" }, { label: "outcome" }], rows, "Outcome of each input set"),
    ...(Number.isFinite(ratio) ? [gauge(ratio)] : []),
    facts([
      ["worst error", one.error_ratio === null ? "" : `${format.figure(ratio)} of its bound`, "Of any element on any set. 1 or less is right. The judge keeps the worst, not one for each set."],
      ["within bounds", one.matched === null ? "" : `${format.percent(one.matched)} of the elements on the worst set`],
      ["witness", one.witness ? `set ${one.witness.input_set}, seed ${one.witness.seed}, output ${one.witness.output} at [${one.witness.index.join(", ")}]: got ${format.float(one.witness.got)}, expected ${format.float(one.witness.expected)}, bound ${format.float(one.witness.bound)}` : "", WORDS.witness],
    ]),
  ];
}

/** The worst error on a log scale, with the bound in the middle. */
function gauge(ratio: number): HTMLElement {
  const [width, height] = [300, 34];
  const at = (value: number): number => 20 + ((Math.log10(Math.min(100, Math.max(0.01, value))) + 2) / 4) * (width - 40);
  const good = ratio <= 1;
  return h("div", {}, s(
    "svg",
    { class: "kw-gauge", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Worst error: ${format.figure(ratio)} of its bound, ${good ? "within it" : "beyond it"}` },
    s("rect", { class: "kw-gauge-good", x: at(0.01), y: 6, width: at(1) - at(0.01), height: 8 }),
    s("rect", { class: "kw-gauge-bad", x: at(1), y: 6, width: at(100) - at(1), height: 8 }),
    s("line", { class: "kw-axis", x1: at(1), x2: at(1), y1: 2, y2: 18 }),
    ...[0.01, 0.1, 1, 10, 100].map((tick) => s("text", { class: "kw-tick", x: at(tick), y: 31, "text-anchor": "middle" }, tick === 1 ? "bound" : `${tick}×`)),
    s("path", { class: "kw-gauge-mark", d: `M${at(ratio)} 15l-5 -9h10z` }),
  ));
}

function timings(one: Evaluation, header: Header | null): HTMLElement[] {
  if (!one.timing) return [heading("Time"), h("p", { class: "kw-dim" }, one.verdict === "right" ? "No time could be had here." : "Only what runs right is timed.")];
  const rows: [string, Timing][] = [[one.candidate, one.timing]];
  if (one.hot) rows.push(["with warm caches", one.hot]);
  for (const [name, base] of [["torch.compile", header?.compile], ["eager", header?.eager]] as const) {
    if (base?.timing && base.timing.modelled === one.timing.modelled) rows.push([name, base.timing]);
  }
  if (one.timing.modelled) {
    return [
      heading("Time", h("span", { class: "kw-modelled", title: WORDS.modelled }, "modelled")),
      facts(rows.map(([name, timing]) => [name, format.time(timing.median_us)])),
      h("p", { class: "kw-dim" }, "Nothing was timed: there are no blocks, no spread and no interval. The figures come from the compiled code and the bytes it moves."),
    ];
  }
  return [
    heading("Timing blocks"),
    spreads(rows, header?.floor_us ?? null),
    grid(
      [{ label: "what" }, { label: "median" }, { label: "95 % interval", title: "Of the median, over the blocks." }, { label: "p10 – p90", title: "Of single calls." }, { label: "calls" }, { label: "blocks", title: "Rounds in which it alternated with the faster baseline." }],
      rows.map(([name, timing]) => h("tr", {},
        h("th", { scope: "row" }, name), h("td", {}, format.time(timing.median_us)), h("td", {}, format.interval(timing.low_us, timing.high_us)),
        h("td", {}, format.interval(timing.p10_us, timing.p90_us)), h("td", {}, format.count(timing.calls)), h("td", {}, format.count(timing.blocks)))),
      "Timing blocks",
    ),
    facts([
      ["speedup", one.speedup ? `${format.ratio(one.speedup.ratio)} over ${one.speedup.against} (95 %: ${format.figure(one.speedup.low)} – ${format.ratio(one.speedup.high)})` : ""],
      ["own kernels", one.own_kernel_share === null ? "" : `${format.percent(one.own_kernel_share)} of the GPU time`],
    ]),
  ];
}

/** For each timing a line from p10 to p90, a box for the interval and a stroke for the median, on one logarithmic scale. */
function spreads(rows: [string, Timing][], floor: number | null): HTMLElement {
  const [width, row, left] = [460, 22, 118];
  const height = rows.length * row + 22;
  const times = [...rows.flatMap(([, timing]) => [timing.p10_us, timing.p90_us]), ...(floor === null ? [] : [floor])];
  const [least, most] = [Math.min(...times) / 1.06, Math.max(...times) * 1.06];
  const x = (us: number): number => left + (Math.log(us / least) / Math.log(most / least)) * (width - left - 10);
  const marks = rows.flatMap(([name, timing], index) => {
    const y = 12 + index * row;
    return [
      s("text", { class: "kw-tick", x: left - 8, y: y + 4, "text-anchor": "end" }, name),
      s("line", { class: "kw-spread", x1: x(timing.p10_us), x2: x(timing.p90_us), y1: y, y2: y }),
      s("rect", { class: "kw-spread-box", x: x(timing.low_us), y: y - 5, width: Math.max(2, x(timing.high_us) - x(timing.low_us)), height: 10 }),
      s("line", { class: "kw-spread-median", x1: x(timing.median_us), x2: x(timing.median_us), y1: y - 7, y2: y + 7 }),
    ];
  });
  return h("div", {}, s(
    "svg",
    { class: "kw-spreads", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Spread of the times; the table below has the figures" },
    floor !== null && s("line", { class: "kw-line kw-line-floor", x1: x(floor), x2: x(floor), y1: 2, y2: height - 16 }),
    floor !== null && s("text", { class: "kw-tick", x: Math.max(left + 30, x(floor)), y: height - 3, "text-anchor": "middle" }, `floor ${format.time(floor)}, log scale`),
    ...marks,
  ));
}

function identity(detail: Detail, one: Evaluation, store: Store): HTMLElement[] {
  const mono = (text: string): HTMLElement => h("span", { class: "kw-mono" }, text);
  return [
    heading("What exactly was judged"),
    facts([
      ["evaluation", one.id],
      ["parameters", format.parameters(one.parameters) && mono(format.parameters(one.parameters))],
      ["source", mono(`sha256 ${sha256(detail.candidate.source)}`), "Of the variant's module, as the judge got it."],
      ["reference", store.texts.reference && mono(`sha256 ${sha256(store.texts.reference)}`), "Of the reference's module text."],
      ["task", mono(one.task), "Digest of reference, inputs, precision and target."],
      ["run", mono(store.header?.run ?? "")],
      ["seed", one.seed === null ? "drawn by the judge for this judging, and known to nobody before" : `${one.seed}, given: a judging that can be repeated, and can't be accepted`],
      ["seed to see it again", one.replay === null ? "" : String(one.replay), "With it the judge makes the very same inputs once more."],
      ["mode", one.mode],
    ]),
  ];
}

function environment(one: Evaluation, store: Store): HTMLElement[] {
  const at = one.environment;
  const tier = at.sandbox || "not known";
  return [
    heading("Where"),
    facts([
      ["GPU", at.gpu || `none: built and modelled for ${store.header?.target ?? "its target"}`],
      ["driver", at.driver],
      ["torch", at.torch],
      ["Triton", at.triton],
      ["Python", at.python],
      ["sandbox", tier, "What stood between the variant and this machine."],
    ]),
  ];
}

function replay(one: Evaluation, detail: Detail, store: Store): HTMLElement[] {
  const seed = one.replay ?? one.seed ?? one.witness?.seed ?? null;
  const parameters = Object.keys(one.parameters).length ? JSON.stringify(one.parameters).replace(/\btrue\b/g, "True").replace(/\bfalse\b/g, "False").replace(/\bnull\b/g, "None") : "{}";
  const lines = [
    "import workbench",
    "from workbench.fleet import judge_once",
    `run = workbench.open("${store.header?.run ?? ""}")`,
    `variant = run.candidate("${detail.candidate.id}").candidate`,
    `prepared, found = judge_once(run.task, variant, ${parameters}, mode="${one.mode}"${seed === null ? "" : `, seed=${seed}`})`,
    "found.verdict, found.reason, found.witness",
  ].join("\n");
  return [
    heading("Judge it again"),
    h("p", { class: "kw-dim" }, seed === null ? "In a cell of this notebook. The judge draws new seeds, so a right variant has to be right once more." : `In a cell of this notebook. Seed ${seed} makes the inputs of this judging again.`),
    h("div", { class: "kw-message-body" }, h("pre", { class: "kw-pre", tabindex: 0, "aria-label": "How to judge it again" }, lines), copyButton(() => lines, "Copy")),
  ];
}

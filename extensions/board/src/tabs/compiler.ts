/** What the compiler made of a variant: its source beside any stage, linked line by line; two variants compared at any stage. */

import type { CompiledLaunch, CompilerReport, Detail, Stage } from "../../../protocol";
import { h, missing, put, say } from "../dom";
import { showDiff, showLinked } from "../editor";
import * as format from "../format";
import { WORDS } from "../glossary";
import type { Tab } from "../inspector";
import type { Inspections } from "../inspections";
import { LineMap } from "../linemap";
import { STAGES } from "../stages";
import type { Store } from "../store";
import { facts, ofEvaluation, pickEvaluation } from "./parts";

/** What the person looks at, kept while walking from variant to variant. */
interface View {
  target: string;
  stage: string;
  kernel: number;
  against: string;
}

export class CompilerTab {
  private readonly view: View = { target: "", stage: "ttgir", kernel: 0, against: "" };

  constructor(private readonly inspections: Inspections) {}

  readonly draw: Tab = (panel, detail, store, signal) => {
    this.view.kernel = 0;
    ofEvaluation(panel, detail, signal, "The compiler's stages", (evaluation, now, again) => {
      const place = h("div", { class: "kw-inspected kw-fill-flex" });
      const pick = pickEvaluation(detail, evaluation, again);
      put(panel, pick && h("div", { class: "kw-bar-line" }, pick), place);
      const options: Record<string, string> = this.view.target ? { target: this.view.target } : {};
      this.inspections.show(place, evaluation, "compiler", options, now, (report) => {
        let inner = new AbortController();
        now.addEventListener("abort", () => inner.abort());
        const redraw = (): void => {
          inner.abort();
          inner = new AbortController();
          this.report(place, report, detail, store, inner.signal, redraw, () => again(evaluation));
        };
        redraw();
      });
    });
  };

  private report(place: HTMLElement, report: CompilerReport, detail: Detail, store: Store, signal: AbortSignal, redraw: () => void, reload: () => void): void {
    const { view } = this;
    const launch = report.launches[Math.min(view.kernel, report.launches.length - 1)];
    const target = h("select", { class: "kw-select", "aria-label": "Compile for" }, ...report.targets.map((name) => h("option", { value: name }, name)));
    target.value = report.target;
    target.title = `Figures are for ${report.gpu}.`;
    target.addEventListener("change", () => {
      view.target = target.value;
      reload();
    });
    const notes = report.notes.map((note) => h("p", { class: "kw-dim" }, note));
    const library = report.library.length > 0 && h("p", { class: "kw-dim" }, `Calls into a library, with nothing to take apart: ${report.library.join(", ")}.`);
    if (!launch) {
      put(place, h("div", { class: "kw-bar-line" }, target), library, ...notes, missing("It launches no kernel of its own, so there is no stage to show. Code has its source."));
      return;
    }
    const kernel = h("select", { class: "kw-select", "aria-label": "Kernel" }, ...report.launches.map((one, index) => h("option", { value: String(index) }, `${one.kernel}${one.count > 1 ? ` ×${one.count}` : ""}`)));
    kernel.value = String(report.launches.indexOf(launch));
    kernel.addEventListener("change", () => {
      view.kernel = Number(kernel.value);
      redraw();
    });
    const names = launch.stages.map((stage) => stage.name);
    const stage = launch.stages.find((one) => one.name === view.stage) ?? launch.stages.find((one) => one.text) ?? launch.stages[0];
    const stages = h("div", { class: "kw-segments", role: "radiogroup", "aria-label": "Stage of the compiler" }, ...launch.stages.map((one) => {
      const on = one === stage;
      const control = h("button", { type: "button", class: "kw-segment", role: "radio", "aria-checked": String(on), tabindex: on ? 0 : -1, title: STAGES[one.name]?.about ?? one.name }, STAGES[one.name]?.name ?? one.name);
      control.addEventListener("click", () => {
        view.stage = one.name;
        redraw();
        place.querySelector<HTMLElement>(".kw-segment[aria-checked=true]")?.focus();
      });
      return control;
    }));
    stages.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step === undefined || !stage) return;
      event.preventDefault();
      view.stage = names[(names.indexOf(stage.name) + step + names.length) % names.length]!;
      redraw();
      place.querySelector<HTMLElement>(".kw-segment[aria-checked=true]")?.focus();
    });
    const against = againstSelect(detail, store, view.against);
    against.addEventListener("change", () => {
      view.against = against.value;
      redraw();
    });
    const body = h("div", { class: "kw-fill-flex" });
    put(
      place,
      h("div", { class: "kw-bar-line" }, stages, report.launches.length > 1 && kernel, target, h("label", { class: "kw-dim" }, "Against ", against)),
      resources(launch),
      library,
      ...notes,
      body,
    );
    if (!stage) put(body, missing("The compiler left no stage of this kernel. Look again with another target."));
    else if (view.against && store.row(view.against)) this.compare(body, stage, report, launch, detail, store, signal);
    else if (!stage.text) put(body, missing(stage.note || `This stage is missing for ${report.target}. Choose another target.`));
    else linked(body, stage, report, signal);
  }

  /** The stage of two variants, side by side. */
  private compare(body: HTMLElement, stage: Stage, report: CompilerReport, launch: CompiledLaunch, detail: Detail, store: Store, signal: AbortSignal): void {
    const other = this.view.against;
    const place = h("div", { class: "kw-fill-flex" });
    put(body, place);
    this.inspections.show(place, other, "compiler", { target: report.target }, signal, (theirs) => {
      const match = theirs.launches.find((one) => one.kernel === launch.kernel) ?? theirs.launches[0];
      const text = match?.stages.find((one) => one.name === stage.name);
      if (!stage.text || !text?.text) {
        put(place, missing(`${!stage.text ? detail.candidate.id : other} has no ${STAGES[stage.name]?.name ?? stage.name}${(text?.note || stage.note) ? `: ${text?.note || stage.note}` : "."} Choose another stage.`));
        return;
      }
      const box = h("div", { class: "kw-diff-box kw-fill" });
      put(place, h("p", { class: "kw-dim" }, sameOrNot(stage.text, text.text, other, store.row(other)?.plan ?? "")), box);
      showDiff(box, text.text, stage.text, [`${other}, ${stage.name}`, `${detail.candidate.id}, ${stage.name}`], signal, "stage");
    });
  }
}

function sameOrNot(own: string, theirs: string, other: string, plan: string): string {
  if (own === theirs) return `The two are equal at this stage: the compiler makes the same of ${other}.`;
  const size = own.split("\n").length - theirs.split("\n").length;
  return `${size === 0 ? "As many lines as" : `${format.plural(Math.abs(size), "line")} ${size > 0 ? "more" : "fewer"} than`} ${other}${plan ? ` (${plan})` : ""}.`;
}

/** Source on the left, stage on the right; a line that is meant on one side lights up what belongs to it on the other. */
function linked(body: HTMLElement, stage: Stage, report: CompilerReport, signal: AbortSignal): void {
  const map = LineMap.of(stage);
  const left = h("div", { class: "kw-code-box kw-side" });
  const right = h("div", { class: "kw-code-box kw-side" });
  const status = h("p", { class: "kw-dim kw-linked-words", role: "status", "aria-live": "polite" });
  const name = STAGES[stage.name]?.name ?? stage.name;
  const idle = map.known ? `Point at a line, or click it, to see what ${name} it becomes, and back.` : stage.note || `${name} has no line information here, so nothing is linked.`;
  say(status, stage.cut ? `${idle} The text is cut at a megabyte.` : idle);
  put(body, status, h("div", { class: "kw-sides" }, left, right));
  let kept = 0;
  const light = (line: number, reveal: boolean, from: "source" | "stage"): void => {
    const ranges = line ? map.linesOf(line) : [];
    source.light(line ? [[line, line]] : [], reveal && from === "stage");
    text.light(ranges, reveal && from === "source");
    const count = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    say(status, line ? `Line ${line} becomes ${format.plural(count, "line")} of ${name}.` : idle);
  };
  const meant = (from: "source" | "stage") => (line: number, keep: boolean): void => {
    const origin = from === "source" ? line : map.sourceOf(line);
    if (keep) kept = origin;
    light(origin || kept, keep, from);
  };
  const source = showLinked(left, report.source, "Source", "python", meant("source"), signal);
  const text = showLinked(right, stage.text, name, "stage", meant("stage"), signal);
}

function resources(launch: CompiledLaunch): HTMLElement {
  const mix = launch.instructions.slice(0, 6).map(([name, count]) => `${format.count(count)} ${name}`).join(", ");
  const widest = Math.max(0, ...launch.vectors.map(([bytes]) => bytes));
  const line: [string, string][] = [
    [`${launch.registers} registers`, WORDS.registers],
    [launch.spill_bytes ? `${launch.spill_bytes} B spilled!` : "no spills", WORDS.spills],
    [launch.shared_bytes ? `${format.bytes(launch.shared_bytes)} shared` : "no shared memory", WORDS.shared],
    [`occupancy ${format.percent(launch.occupancy)}${launch.limited_by ? `, by ${launch.limited_by}` : ""}`, WORDS.occupancy],
    [`${format.figure(launch.waves)} waves`, WORDS.waves],
    [`${launch.warps} warps`, "Warps per program."],
    [widest ? `${widest} B a thread and access` : "", WORDS.vector],
    [launch.tensor_cores ? "tensor cores" : "", "It has matrix instructions."],
  ];
  return h("div", { class: "kw-resources" },
    h("p", {}, ...line.filter(([text]) => text).flatMap(([text, title], index) => [index > 0 && " · ", h("span", { title, class: text.endsWith("!") ? "kw-poor" : "" }, text)])),
    h("details", {}, h("summary", { class: "kw-dim" }, `grid ${launch.grid.join("×")}${mix ? `; ${mix}` : ""}`), facts([
      ["arguments", format.parameters(launch.arguments)],
      ["constants", format.parameters(launch.constexprs)],
      ["options", format.parameters(launch.options)],
      ["products", launch.dots.join(", ")],
      ["accesses", launch.vectors.map(([bytes, count]) => `${count} of ${bytes} B`).join(", ")],
      ["instructions", launch.instructions.map(([name, count]) => `${format.count(count)} ${name}`).join(", ")],
      ["on one multiprocessor", `${format.plural(launch.blocks, "program")}`],
      ["built in", `${format.figure(launch.build_ms)} ms`],
    ])),
  );
}

function againstSelect(detail: Detail, store: Store, chosen: string): HTMLSelectElement {
  const ids = new Set([...detail.candidate.parents, store.header?.best?.id ?? ""]);
  for (const row of store.rows.values()) if (ids.size < 60 && row.verdict === "right") ids.add(row.id);
  ids.delete(detail.candidate.id);
  ids.delete("");
  const known = [...ids].filter((id) => store.row(id));
  const named = (id: string): string => (detail.candidate.parents.includes(id) ? `parent ${id}` : id === store.header?.best?.id ? `best, ${id}` : id);
  const select = h("select", { class: "kw-select", "aria-label": "Compare this stage with that of another variant" },
    h("option", { value: "" }, "its source"), ...known.map((id) => h("option", { value: id }, named(id))));
  select.value = known.includes(chosen) ? chosen : "";
  return select;
}

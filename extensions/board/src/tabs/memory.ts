/** Which program touches which addresses: maps of the tensors, one program at a time, and every memory instruction with what it costs. */

import type { AccessRow, LaunchMemory, MemoryReport, TensorMap } from "../../../protocol";
import { onTheme } from "../colours";
import { button, h, missing, put, say } from "../dom";
import * as format from "../format";
import { Heat } from "../heat";
import type { Tab } from "../inspector";
import type { Inspections } from "../inspections";
import { grid, heading, ofEvaluation, pickEvaluation } from "./parts";

/** Programs a second while it plays. */
const PACE = 3;

const SHAPES: Record<string, string> = { small: "cut-down shapes", real: "the real shapes, a few programs" };

export class MemoryTab {
  private shapes = "small";
  private kernel = 0;

  constructor(private readonly inspections: Inspections) {}

  readonly draw: Tab = (panel, detail, _store, signal) => {
    this.kernel = 0;
    ofEvaluation(panel, detail, signal, "Its accesses", (evaluation, now, again) => {
      const shapes = h("select", { class: "kw-select", "aria-label": "Which shapes" }, ...Object.entries(SHAPES).map(([value, label]) => h("option", { value }, label)));
      shapes.value = this.shapes;
      shapes.addEventListener("change", () => {
        this.shapes = shapes.value;
        again(evaluation);
      });
      const place = h("div", { class: "kw-inspected" });
      put(panel, h("div", { class: "kw-bar-line" }, shapes, pickEvaluation(detail, evaluation, again)), place);
      this.inspections.show(place, evaluation, "memory", { shapes: this.shapes }, now, (report) => this.report(place, report, now));
    });
  };

  private report(place: HTMLElement, report: MemoryReport, signal: AbortSignal): void {
    const launch = report.launches[Math.min(this.kernel, report.launches.length - 1)];
    const intro = h("p", { class: "kw-dim" }, report.inputs.length ? `Interpreted on ${report.inputs.join(", ")}. ` : "", ...report.notes.map((note) => `${note} `));
    if (!launch) {
      put(place, intro, missing("It launches no kernel of its own, so there is nothing to map."));
      return;
    }
    let life = new AbortController();
    signal.addEventListener("abort", () => life.abort());
    const kernel = h("select", { class: "kw-select", "aria-label": "Kernel" }, ...report.launches.map((one, index) => h("option", { value: String(index) }, `${one.kernel}, grid ${one.grid.join("×")}${one.count > 1 ? `, ×${one.count}` : ""}`)));
    const body = h("div", { class: "kw-inspected" });
    const show = (one: LaunchMemory): void => {
      life.abort();
      life = new AbortController();
      put(body, ...launchParts(one, life.signal));
    };
    kernel.value = String(report.launches.indexOf(launch));
    kernel.addEventListener("change", () => {
      this.kernel = Number(kernel.value);
      show(report.launches[this.kernel]!);
    });
    put(place, intro, report.launches.length > 1 && kernel, body);
    show(launch);
  }
}

function launchParts(launch: LaunchMemory, signal: AbortSignal): HTMLElement[] {
  const all = launch.counted === launch.programs;
  const counted = `${launch.kernel}: ${all ? `all ${format.plural(launch.programs, "program")}` : `${format.count(launch.counted)} of ${format.plural(launch.programs, "program")}`} counted${all ? "" : "; counts below are of these alone"}.`;
  const maps = launch.tensors.map((tensor) => new TensorView(tensor));
  const parts: HTMLElement[] = [h("p", {}, counted, launch.note !== "" && ` ${launch.note}`)];
  if (launch.sampled.length) parts.push(player(launch, maps, signal));
  parts.push(h("div", { class: "kw-maps" }, ...maps.map((map) => map.element)));
  if (!maps.length) parts.push(missing("None of its tensors could be mapped: its pointers come from somewhere that can't be followed."));
  onTheme(signal, () => maps.forEach((map) => map.redraw()));
  queueMicrotask(() => maps.forEach((map) => map.redraw()));
  return [...parts, ...accesses(launch)];
}

class TensorView {
  readonly element: HTMLElement;
  private readonly reads: Heat | null;
  private readonly writes: Heat | null;

  constructor(readonly tensor: TensorMap) {
    this.reads = tensor.most_reads ? new Heat(tensor, "read") : null;
    this.writes = tensor.most_writes ? new Heat(tensor, "written") : null;
    const cell = [tensor.rows > 1 && format.plural(tensor.row_elements, "row"), format.plural(tensor.column_elements, "column")].filter(Boolean).join(" × ");
    this.element = h("section", { class: "kw-map", "aria-label": `Tensor ${tensor.name}` },
      h("p", {}, h("b", { class: "kw-mono" }, tensor.name), ` ${tensor.shape.join("×") || "scalar"} ${format.dtype(tensor.dtype)}`, h("span", { class: "kw-dim", title: `Strides ${tensor.strides.join(", ")}.` }, ` · ${format.percent(tensor.touched)} touched · a cell is ${cell}${tensor.folded > 1 ? `, the mean of ${tensor.folded}` : ""}`)),
      h("div", { class: "kw-heats" }, this.reads?.element ?? null, this.writes?.element ?? null, !this.reads && !this.writes && missing("No program that was counted touches it.")),
    );
  }

  program(footprint: LaunchMemory["sampled"][number]["footprints"][number] | undefined): void {
    this.reads?.program(footprint?.reads ?? []);
    this.writes?.program(footprint?.writes ?? []);
  }

  redraw(): void {
    this.reads?.draw();
    this.writes?.draw();
  }
}

/** A slider over the programs, and a button that walks through them. */
function player(launch: LaunchMemory, maps: TensorView[], signal: AbortSignal): HTMLElement {
  const programs = launch.sampled;
  const slider = h("input", { class: "kw-slider", type: "range", min: 0, max: programs.length - 1, value: 0, step: 1, "aria-label": "Program" });
  const name = h("span", { class: "kw-mono", role: "status", "aria-live": "polite" });
  let timer: ReturnType<typeof setInterval> | undefined;
  const show = (index: number): void => {
    const one = programs[index]!;
    slider.value = String(index);
    const label = `program (${one.program.join(", ")})`;
    slider.setAttribute("aria-valuetext", label);
    say(name, `${label}, number ${format.count(one.number)}`);
    for (const map of maps) map.program(one.footprints.find((footprint) => footprint.tensor === map.tensor.name));
  };
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
    say(play, "Play");
    play.setAttribute("aria-pressed", "false");
  };
  const play = button("Play", "Walks through the programs, in the order of their numbers.", () => {
    if (timer !== undefined) return stop();
    if (Number(slider.value) === programs.length - 1) show(0);
    say(play, "Pause");
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      const next = Number(slider.value) + 1;
      if (next >= programs.length) stop();
      else show(next);
    }, 1000 / PACE);
  }, { "aria-pressed": "false" });
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  signal.addEventListener("abort", () => clearInterval(timer));
  queueMicrotask(() => show(0));
  return h("div", { class: "kw-bar-line" }, play, slider, name);
}

function accesses(launch: LaunchMemory): HTMLElement[] {
  if (!launch.accesses.length) return [heading("Memory instructions"), h("p", { class: "kw-dim" }, "No program that was counted loads or stores anything.")];
  const head = [
    { label: "line" }, { label: "code" }, { label: "does" },
    { label: "asked", title: "Bytes of unmasked lanes, over all programs that were counted." },
    { label: "distinct", title: "Bytes of these at different addresses. Much less than asked: the same bytes are asked for again." },
    { label: "sectors", title: "Sectors of 32 bytes that move for 32 neighbouring lanes, and how many would do if the bytes lay side by side." },
    { label: "masked", title: "Lanes that the mask turns off." },
    { label: "in words" },
  ];
  return [heading("Memory instructions"), grid(head, launch.accesses.map(access), "Memory instructions")];
}

function access(one: AccessRow): HTMLElement {
  const [words, poor] = reading(one);
  return h("tr", {},
    h("td", { class: "kw-num" }, one.line ? String(one.line) : "–"),
    h("td", { class: "kw-mono kw-access", title: one.text }, one.text.trim() || "–"),
    h("td", {}, `${one.op} ${one.tensor === "?" ? "somewhere" : one.tensor}`),
    h("td", { class: "kw-num" }, format.bytes(one.bytes_requested)),
    h("td", { class: "kw-num" }, format.bytes(one.bytes_unique)),
    h("td", { class: "kw-num" }, `${format.figure(one.sectors_per_request)} of ${format.figure(one.ideal_sectors_per_request)}`),
    h("td", { class: "kw-num" }, format.percent(one.masked)),
    h("td", { class: poor ? "kw-poor" : "kw-dim" }, words),
  );
}

/** What the figures of an access say, and whether it deserves a second look. */
function reading(one: AccessRow): [string, boolean] {
  const spread = one.ideal_sectors_per_request > 0 ? one.sectors_per_request / one.ideal_sectors_per_request : 1;
  const again = one.bytes_unique > 0 ? one.bytes_requested / one.bytes_unique : 1;
  const found: string[] = [];
  if (spread > 1.5) found.push(`scattered: ${format.times(spread)} the sectors that would do`);
  if (one.op === "load" && again > 1.5) found.push(`each byte asked for ${format.times(again)}`);
  if (one.masked > 0.25) found.push("many lanes idle");
  const poor = spread > 1.5 || one.masked > 0.25;
  if (found.length) return [`${found.join("; ")}${poor ? "!" : ""}`, poor];
  return ["side by side", false];
}

/** Where the time goes: the variant's timeline beside the reference's, their kernels, and hardware counters where they can be read. */

import type { TimeKind, Timeline, TraceReport } from "../../../protocol";
import { button, h, missing, put, say } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";
import type { Tab } from "../inspector";
import type { Inspections } from "../inspections";
import { TimelineView, Window } from "../timeline";
import { counters } from "./counters";
import { grid, heading, ofEvaluation, pickEvaluation } from "./parts";

const KINDS: Record<TimeKind, { word: string; about: string }> = {
  measured: { word: "measured", about: WORDS.measured },
  modelled: { word: "modelled", about: WORDS.modelled },
  host: { word: "this machine's own time", about: "How long the PyTorch ops take on this machine's processor. It can be compared with nothing else here." },
};

const COUNTERS = { counters: "true" };

export class TraceTab {
  constructor(private readonly inspections: Inspections) {}

  readonly draw: Tab = (panel, detail, _store, signal) => {
    ofEvaluation(panel, detail, signal, "Its timeline", (evaluation, now, again) => {
      const place = h("div", { class: "kw-inspected" });
      const pick = pickEvaluation(detail, evaluation, again);
      put(panel, pick && h("div", { class: "kw-bar-line" }, pick), place);
      this.inspections.show(place, evaluation, "trace", {}, now, (report, request) => {
        this.report(place, report, request, detail.candidate.id, now);
        place.append(...this.counters(report, evaluation, now));
      });
    });
  };

  private report(place: HTMLElement, report: TraceReport, request: string, name: string, signal: AbortSignal): void {
    const drawn = report.timelines.filter((timeline) => timeline.slices.length);
    // Times of one kind share one scale, so that what is shorter looks shorter; other kinds must not be compared.
    const windows = new Map<TimeKind, Window>();
    for (const timeline of drawn) {
      const longest = Math.max(...drawn.filter((one) => one.kind === timeline.kind).map((one) => one.total_us));
      if (!windows.has(timeline.kind)) windows.set(timeline.kind, new Window(longest * 1.02));
    }
    const status = h("span", { class: "kw-dim", role: "status" });
    const save = report.file ? button("Save Chrome trace", "The full trace, for chrome://tracing, Perfetto or speedscope.", () => {
      say(status, "Fetching it…");
      this.inspections.save(request, (text) => say(status, text));
    }) : null;
    const open = report.file ? button("Open in a tab", "The full trace in speedscope, in this JupyterLab. Nothing leaves the machine.", () => {
      say(status, "Fetching it…");
      this.inspections.save(request, (text) => say(status, text), place);
    }) : null;
    const shared = windows.size === 1 ? [...windows.values()][0] : undefined;
    const apart = windows.size > 1 && h("p", { class: "kw-dim" }, "Times of different kinds stand on scales of their own: their lengths can't be compared.");
    put(
      place,
      h("div", { class: "kw-bar-line" }, shared ? TimelineView.buttons(shared) : null, open, save, status),
      ...report.notes.map((note) => h("p", { class: "kw-dim" }, note)),
      apart,
      ...report.timelines.flatMap((timeline) => {
        const window = windows.get(timeline.kind);
        const kind = KINDS[timeline.kind];
        return [
          heading(timeline.name === "variant" ? name : "the reference", h("span", { class: timeline.kind === "measured" ? "kw-dim" : "kw-modelled", title: kind.about }, kind.word), timeline.slices.length > 0 && h("span", { class: "kw-dim" }, format.time(timeline.total_us)), h("span", { class: "kw-gap" }), !shared && window !== undefined && timeline.slices.length > 0 && TimelineView.buttons(window)),
          ...(timeline.note ? [h("p", { class: "kw-dim" }, timeline.note)] : []),
          ...(window && timeline.slices.length ? [new TimelineView(timeline, window, signal).element] : timeline.note ? [] : [missing("Nothing was recorded of it. Look again.")]),
          ...kernels(timeline),
        ];
      }),
    );
  }

  /** Reading them takes a while and holds the card, so that a person asks for it. */
  private counters(report: TraceReport, evaluation: string, signal: AbortSignal): HTMLElement[] {
    const note = report.metrics_note ? h("p", { class: "kw-dim" }, report.metrics_note) : null;
    if (report.metrics.length) return [heading("Hardware counters"), ...counters(report)];
    if (!report.measured) return note ? [heading("Hardware counters"), note] : [];
    const box = h("div", { class: "kw-inspected" });
    const read = (): void => this.inspections.show(box, evaluation, "trace", COUNTERS, signal, (found) => put(box, ...counters(found)));
    if (this.inspections.asked(evaluation, "trace", COUNTERS)) read();
    else put(box, h("div", { class: "kw-bar-line" }, button("Read hardware counters", "One call under NVIDIA Nsight Compute, in a sandbox: each launch runs several times, and no judge times on this GPU meanwhile.", read)), note);
    return [heading("Hardware counters"), box];
  }
}

function kernels(timeline: Timeline): HTMLElement[] {
  if (!timeline.kernels.length) return [];
  const rows = [...timeline.kernels].sort((a, b) => b.total_us - a.total_us).map((kernel) => h("tr", {},
    h("th", { scope: "row", class: "kw-mono kw-access", title: kernel.name }, kernel.name, kernel.own && h("span", { class: "kw-badge" }, "own")),
    h("td", { class: "kw-num kw-right" }, format.count(kernel.calls)),
    h("td", { class: `kw-num kw-right${timeline.kind === "modelled" ? " kw-num-modelled" : ""}` }, format.time(kernel.total_us)),
    h("td", {}, h("span", { class: "kw-share" }, h("span", { class: "kw-bar" }, h("span", { class: "kw-bar-fill", style: `width:${Math.min(1, kernel.share) * 100}%` })), h("span", { class: "kw-num" }, format.percent(kernel.share)))),
    h("td", { class: "kw-num kw-right" }, kernel.bytes === null ? "–" : format.bytes(kernel.bytes)),
  ));
  return [grid([{ label: timeline.kind === "host" ? "op" : "kernel" }, { label: "calls", figures: true }, { label: "time", figures: true }, { label: "share" }, { label: "bytes", figures: true }], rows, `Kernels of the ${timeline.name}`)];
}

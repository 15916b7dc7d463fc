/** Inspections of variants: asked for once, kept for as long as the board is open, and shown with a way out while they run. */

import { offerTrace } from "../../bridge";
import type { Report, What } from "../../protocol";
import { button, h, put } from "./dom";
import { newRequest } from "./requests";
import type { Store } from "./store";

interface Known {
  request: string;
  began: number;
  report: Report | null;
  failed: string;
  listeners: Set<() => void>;
}

type Of<W extends What> = Extract<Report, { what: W }>;

/** After so many ms it is said that it takes long. */
const LONG = 12_000;

const DOING: Record<What, string> = {
  compiler: "Compiling it for the target in a sandbox, and taking the stages apart…",
  memory: "Interpreting its programs in a sandbox, and noting every address…",
  trace: "Running it beside the reference, and drawing up where the time goes…",
};

const COUNTING = "Running it under NVIDIA Nsight Compute in a sandbox, each launch several times…";

export class Inspections {
  private readonly known = new Map<string, Known>();

  constructor(private readonly store: Store) {}

  /**
   * Draws an inspection into `place`: a spinner with a way out while it runs, why it failed and a way to try again, or what `draw` makes
   * of its report. `name` says whose it is, for people.
   */
  show<W extends What>(
    place: HTMLElement, evaluation: string, what: W, options: Record<string, string>, signal: AbortSignal, draw: (report: Of<W>, request: string) => void,
  ): void {
    const key = JSON.stringify([evaluation, what, options]);
    const known = this.known.get(key) ?? this.ask(key, evaluation, what, options);
    const update = (): void => {
      if (signal.aborted) return;
      if (known.report) draw(known.report as Of<W>, known.request);
      else if (known.failed) put(place, this.failure(known.failed, () => this.again(key, place, evaluation, what, options, signal, draw)));
      else put(place, this.spinner(options.counters ? COUNTING : DOING[what], known, () => this.cancel(known)));
    };
    known.listeners.add(update);
    signal.addEventListener("abort", () => known.listeners.delete(update));
    update();
  }

  /** Whether that was asked for since the board was opened. */
  asked(evaluation: string, what: What, options: Record<string, string>): boolean {
    return this.known.has(JSON.stringify([evaluation, what, options]));
  }

  /**
   * Asks for the file of an inspection, and hands it to the viewer of the JupyterLab extension, if `viewer` is given and there is one,
   * else to the browser's download. `say` gets one line on how it went.
   */
  save(request: string, say: (text: string) => void, viewer?: Element): void {
    this.store.hear(request, (message, buffers) => {
      if (message.type !== "file") return;
      const bytes = buffers[0];
      if (message.error || !bytes) {
        say(message.error || "The trace did not arrive.");
        return;
      }
      if (viewer && offerTrace(viewer, message.name, bytes as DataView<ArrayBuffer>)) {
        say(`Opened ${message.name} in a tab.`);
        return;
      }
      const url = URL.createObjectURL(new Blob([bytes as DataView<ArrayBuffer>]));
      const link = h("a", { href: url, download: message.name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      say(viewer ? `Saved as ${message.name}: the viewer comes with the JupyterLab extension, which is not here.` : `Saved as ${message.name}.`);
    });
    this.store.model.send({ type: "save", request });
  }

  private ask(key: string, evaluation: string, what: What, options: Record<string, string>): Known {
    const request = newRequest();
    const known: Known = { request, began: performance.now(), report: null, failed: "", listeners: new Set() };
    this.known.set(key, known);
    this.store.hear(request, (message) => {
      if (message.type !== "inspection" || known.failed) return;
      known.report = message.report;
      known.failed = message.report ? "" : message.message || "Nothing came back.";
      for (const listener of [...known.listeners]) listener();
    });
    this.store.model.send({ type: "inspect", request, evaluation, what, options });
    return known;
  }

  private again<W extends What>(
    key: string, place: HTMLElement, evaluation: string, what: W, options: Record<string, string>, signal: AbortSignal, draw: (report: Of<W>, request: string) => void,
  ): void {
    this.known.delete(key);
    this.show(place, evaluation, what, options, signal, draw);
  }

  private cancel(known: Known): void {
    this.store.model.send({ type: "leave", request: known.request });
    known.failed = "You cancelled it.";
    for (const listener of [...known.listeners]) listener();
  }

  private spinner(doing: string, known: Known, cancel: () => void): HTMLElement {
    const late = h("span", { class: "kw-dim", hidden: true }, " It takes longer than usual; the run's own judging goes first.");
    setTimeout(() => (late.hidden = false), Math.max(0, LONG - (performance.now() - known.began)));
    return h(
      "div",
      { class: "kw-wait", role: "status" },
      h("span", { class: "kw-spinner", "aria-hidden": "true" }),
      h("span", {}, doing, h("span", { class: "kw-dim" }, doing === COUNTING ? " This takes up to a minute." : " This takes a few seconds."), late),
      button("Cancel", "Waits for it no longer. The run is not touched.", cancel),
    );
  }

  private failure(why: string, again: () => void): HTMLElement {
    return h("div", { class: "kw-empty" }, h("p", {}, why), button("Look again", "Asks for the same once more.", again));
  }
}

/** The head of the board: what is made fast, what it costs today, how fast it could be, and how far we are. */

import type { Baseline, Budget, Header } from "../../protocol";
import { h, put, say } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import type { Word } from "./glossary";
import { NOT_RUNNING, isStored } from "./states";
import type { Store } from "./store";

const STATES: Record<Header["state"], string> = {
  preparing: "preparing",
  waiting: "waiting for you",
  running: "running",
  paused: "paused",
  stopping: "stopping",
  ended: "ended",
  interrupted: "interrupted",
};

interface Tile {
  element: HTMLElement;
  set(value: string, note: string, modelled: boolean, share?: number, title?: string): void;
}

export function mountHeader(parent: Element, store: Store, signal: AbortSignal): void {
  const name = h("span", { class: "kw-op" });
  const shapes = h("span", { class: "kw-shapes" });
  const target = h("span", { class: "kw-chip" });
  const state = h("span", { class: "kw-state", role: "status", "aria-live": "polite" });
  const eager = tile("Eager", "eager");
  const compile = tile("torch.compile", "compile");
  const floor = tile("Floor", "floor");
  const best = tile("Best so far", "best", "kw-tile-best");
  const budget = tile("Budget", "budget");
  const notes = h("ul", { class: "kw-notes", hidden: true });
  const spoken = h("span", { class: "kw-sr", role: "status", "aria-live": "polite" });
  parent.append(
    h("div", { class: "kw-title" }, name, shapes, h("span", { class: "kw-gap" }), target, state),
    h("div", { class: "kw-tiles" }, best.element, floor.element, compile.element, eager.element, budget.element),
    notes,
    spoken,
  );
  let announced: string | null = null;

  store.on("run", signal, () => {
    const header = store.header;
    if (!header) return;
    say(name, header.name);
    name.title = `Run ${header.run}`;
    say(shapes, signature(header));
    shapes.title = tensors(header);
    say(target, header.modelled ? `no GPU: modelled for ${header.target}` : header.device || header.target);
    target.title = header.modelled ? WORDS.modelled : `Kernels are built for ${header.target}.`;
    target.classList.toggle("kw-chip-modelled", header.modelled);
    const stored = isStored(header);
    state.dataset["state"] = stored ? "ended" : header.state;
    say(state, stored && header.state !== "interrupted" ? "stored run" : STATES[header.state]);
    state.title = stored ? NOT_RUNNING : header.reason;
    showBaseline(eager, header.eager);
    showBaseline(compile, header.compile);
    if (header.floor_us !== null) floor.set(format.time(header.floor_us), work(header), false);
    else floor.set("–", "soon", false);
    showBest(best, header);
    showBudget(budget, header.budget, header.spent);
    put(notes, ...header.notes.map((note) => h("li", {}, note)));
    notes.hidden = header.notes.length === 0;
    const now = header.best ? `${header.best.id} ${header.best.time_us}` : "";
    if (announced !== null && now && now !== announced && header.best) {
      say(spoken, `New best: ${header.best.id}, ${format.time(header.best.time_us)}${header.best.modelled ? ", modelled" : ""}`);
    }
    announced = now;
  });
}

function tile(label: string, word: Word, extra = ""): Tile {
  const value = h("span", { class: "kw-value" });
  const tag = h("span", { class: "kw-modelled", title: WORDS.modelled, hidden: true }, "modelled");
  const note = h("span", { class: "kw-note" });
  const bar = h("span", { class: "kw-meter-fill" });
  const meter = h("span", { class: "kw-meter", hidden: true, "aria-hidden": "true" }, bar);
  const element = h(
    "div",
    { class: `kw-tile ${extra}` },
    h("span", { class: "kw-label", title: WORDS[word] }, label),
    h("span", { class: "kw-figure" }, value, tag),
    meter,
    note,
  );
  return {
    element,
    set(text, remark, modelled, share, title) {
      say(value, text);
      say(note, remark);
      note.title = title ?? remark;
      tag.hidden = !modelled;
      meter.hidden = share === undefined;
      bar.style.width = `${Math.min(100, (share ?? 0) * 100)}%`;
    },
  };
}

function showBaseline(target: Tile, baseline: Baseline | null): void {
  const timing = baseline?.timing;
  if (!timing) {
    target.set("–", baseline?.reason || "soon", false);
  } else if (timing.modelled) {
    target.set(format.time(timing.median_us), baseline?.reason || "the op as it is", true);
  } else {
    target.set(format.time(timing.median_us), format.interval(timing.low_us, timing.high_us), false, undefined, WORDS.measured);
  }
}

function showBest(target: Tile, header: Header): void {
  const best = header.best;
  if (!best) {
    target.set(header.state === "ended" ? "none" : "none yet", nothing(header), false);
    return;
  }
  const share = header.floor_us ? header.floor_us / best.time_us : undefined;
  const floor = share === undefined ? "" : ` · ${format.percent(share)} of the floor`;
  if (best.speedup && !best.modelled) {
    const speedup = best.speedup;
    const note = `${format.ratio(speedup.ratio)} over ${speedup.against === "compile" ? "torch.compile" : speedup.against}`;
    const title = `${format.interval(best.low_us, best.high_us)}; ${format.figure(speedup.low)} – ${format.ratio(speedup.high)}. ${WORDS.measured}`;
    target.set(format.time(best.time_us), `${best.id} · ${note}${floor}`, false, share, title);
  } else {
    const range = best.modelled ? "" : ` · ${format.interval(best.low_us, best.high_us)}`;
    target.set(format.time(best.time_us), `${best.id}${range}${floor}`, best.modelled, share);
  }
}

function nothing(header: Header): string {
  if (header.evaluations) return header.state === "ended" ? "no variant was right" : "no variant is right so far";
  if (header.state === "preparing") return "the judge is getting ready";
  return header.state === "waiting" ? "press Step to judge a first variant" : "nothing judged yet";
}

function showBudget(target: Tile, budget: Budget, spent: Budget): void {
  const parts: [string, number][] = [];
  const use = (text: (value: number) => string, used: number | null, cap: number | null): void => {
    if (cap !== null) parts.push([`${text(used ?? 0)} of ${text(cap)}`, cap ? (used ?? 0) / cap : 1]);
  };
  use((n) => `${format.count(n)} judged`, spent.evaluations, budget.evaluations);
  use(format.duration, spent.seconds, budget.seconds);
  use((n) => `${format.duration(n)} GPU`, spent.gpu_seconds, budget.gpu_seconds);
  use((n) => `${format.count(n)} tokens`, spent.tokens, budget.tokens);
  use((n) => `$${n.toFixed(2)}`, spent.money, budget.money);
  const judged = `${format.count(spent.evaluations ?? 0)} judged in ${format.duration(spent.seconds ?? 0)}`;
  if (!parts.length) {
    target.set("no cap", judged, false);
    return;
  }
  const [, share] = parts.reduce((most, part) => (part[1] > most[1] ? part : most));
  const value = budget.evaluations !== null ? `${format.count(spent.evaluations ?? 0)} / ${format.count(budget.evaluations)}` : format.percent(share);
  const rest = parts.filter(([text]) => budget.evaluations === null || !text.includes("judged")).map(([text]) => text);
  target.set(value, ["judged", ...rest].join(" · "), false, share, parts.map(([text]) => text).join("; "));
}

function signature(header: Header): string {
  const tensors = header.inputs.filter((input) => input.dtype !== "python");
  const shown = tensors.slice(0, 3).map(format.tensor);
  if (tensors.length > 3) shown.push(`+${tensors.length - 3}`);
  return `${shown.join(", ")} → ${header.outputs.map(format.tensor).join(", ")}`;
}

function tensors(header: Header): string {
  const inputs = header.inputs.map((input) => `${input.name ?? "?"}: ${format.tensor(input)}${input.role && input.role !== "input" ? ` (${input.role})` : ""}`);
  return [...inputs, `precision: ${header.precision}`].join("\n");
}

function work(header: Header): string {
  return `${format.bytes(header.bytes)} moved, ${format.flops(header.flops)}`;
}

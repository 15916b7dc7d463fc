/** Where the time goes, against the floor: a few bars on one scale, and a sentence that reads them. */

import type { Evaluation, Header, ModelledTime } from "../../../protocol";
import { h } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";

interface Part {
  label: string;
  us: number;
  kind: "floor" | "total" | "part" | "base";
  title: string;
}

export function timeBreakdown(evaluation: Evaluation, header: Header | null): HTMLElement[] {
  const timing = evaluation.timing;
  if (!timing) {
    const why = evaluation.verdict === "right" ? "No time could be had here." : "Only what runs right is timed, so there is no time to explain.";
    return [h("h4", { class: "kw-h" }, "Time"), h("p", { class: "kw-empty" }, why)];
  }
  const floor = header?.floor_us ?? null;
  const model = evaluation.modelled;
  const parts: Part[] = [];
  if (floor !== null) parts.push({ label: "floor", us: floor, kind: "floor", title: WORDS.floor });
  parts.push({ label: evaluation.candidate, us: timing.median_us, kind: "total", title: timing.modelled ? WORDS.modelled : WORDS.measured });
  if (model) parts.push(...modelParts(model));
  const eager = header?.eager?.timing;
  const compile = header?.compile?.timing;
  if (compile && compile.modelled === timing.modelled) parts.push({ label: "torch.compile", us: compile.median_us, kind: "base", title: WORDS.compile });
  if (eager && eager.modelled === timing.modelled) parts.push({ label: "eager", us: eager.median_us, kind: "base", title: WORDS.eager });
  // Baselines are often ten times slower; on their scale nothing else could be read, so they may run out of the picture.
  const widest = Math.max(...parts.filter((part) => part.kind !== "base").map((part) => part.us)) * 1.35;
  return [
    h("h4", { class: "kw-h" }, "Where the time goes", timing.modelled && h("span", { class: "kw-modelled", title: WORDS.modelled }, "modelled")),
    h("p", {}, sentence(evaluation, header)),
    h(
      "table",
      { class: "kw-bars" },
      h("tbody", {}, ...parts.map((part) =>
        h("tr", { class: `kw-bars-${part.kind}`, title: part.title },
          h("th", { scope: "row" }, part.label),
          h("td", {}, h("span", { class: "kw-bar" }, h("span", { class: `kw-bar-fill${part.us > widest ? " kw-beyond" : ""}`, style: `width:${Math.min(1, part.us / widest) * 100}%` }))),
          h("td", { class: "kw-num" }, format.time(part.us)),
        ),
      )),
    ),
    h("p", { class: "kw-dim" }, figures(evaluation, header)),
  ];
}

function modelParts(model: ModelledTime): Part[] {
  const part = (label: string, us: number, limiter: string, title: string): Part => ({
    label: model.limiter === limiter ? `${label} (limits)` : label, us, kind: "part", title,
  });
  return [
    part("device memory", model.memory_us, "memory", "Distinct bytes touched over what the memory delivers."),
    part("L2 cache", model.l2_us, "l2", "All bytes requested over what the L2 delivers."),
    part("arithmetic", model.compute_us, "compute", "Floating-point operations over the peak for their precision."),
    part("launches", model.launch_us, "launches", "The fixed cost of starting kernels."),
  ].filter((one) => one.us > 0);
}

function sentence(evaluation: Evaluation, header: Header | null): string {
  const timing = evaluation.timing!;
  const model = evaluation.modelled;
  const floor = header?.floor_us ?? null;
  const lead = floor === null ? "" : `It takes ${format.ratio(timing.median_us / floor)} the floor: ${format.percent(floor / timing.median_us)} of what physics allows. `;
  if (!model) return lead + (timing.modelled ? "" : `The median lies within ${format.interval(timing.low_us, timing.high_us)}.`);
  const limits: Record<string, string> = {
    memory: "Device memory limits it: fewer or wider accesses help, more arithmetic costs nothing.",
    l2: "The L2 cache limits it: the same bytes are requested more than once. Reuse them from registers or shared memory.",
    compute: "Arithmetic limits it: use tensor cores, or do less work per element.",
    launches: "Launches limit it: fuse kernels, since each launch has a fixed cost.",
  };
  return lead + (limits[model.limiter] ?? `Limited by ${model.limiter}.`);
}

function figures(evaluation: Evaluation, header: Header | null): string {
  const model = evaluation.modelled;
  const out: string[] = [];
  if (model) {
    const least = header?.bytes ? ` (the least is ${format.bytes(header.bytes)}, so ${format.ratio(model.dram_bytes / header.bytes)})` : "";
    out.push(`${format.bytes(model.dram_bytes)} from device memory${least}`, `${format.bytes(model.l2_bytes)} requested`);
    out.push(format.flops(model.flops), `${model.launches} ${model.launches === 1 ? "launch" : "launches"}`);
  } else if (header?.bytes && evaluation.timing) {
    out.push(`${figureRate(header.bytes / evaluation.timing.median_us)} of useful bandwidth`);
  }
  if (evaluation.own_kernel_share !== null) out.push(`${format.percent(evaluation.own_kernel_share)} of GPU time in its own kernels`);
  if (evaluation.hot) out.push(`${format.time(evaluation.hot.median_us)} with warm caches`);
  return out.length ? `${out.join(", ")}.` : "";
}

function figureRate(bytesPerUs: number): string {
  return format.rate(1e6 * bytesPerUs, "B");
}

/** Hardware counters as a table: a line each, a column for each kernel, the whole call last. */

import type { Metric, TraceReport } from "../../../protocol";
import { h } from "../dom";
import * as format from "../format";
import { grid } from "./parts";

/** Letters of a kernel's name in the head. */
const LONGEST = 28;

export function counters(report: TraceReport): HTMLElement[] {
  const metrics = joined(report.metrics);
  const kernels = [...new Set(metrics.map((one) => one.kernel))];
  const rows = names(report.metrics).map((name) => {
    const ofName = metrics.filter((one) => one.name === name);
    const ofKernels = ofName.some((one) => one.kernel);
    return h("tr", { title: ofName[0]?.meaning },
      h("th", { scope: "row" }, name),
      ...kernels.map((kernel) => {
        const found = ofName.find((one) => one.kernel === kernel);
        // A dash: not known. Nothing: there is no such figure of the whole, or of a kernel alone.
        return h("td", { class: "kw-num kw-right" }, found ? figure(found) : kernel && ofKernels ? "–" : "");
      }));
  });
  const head = kernels.map((kernel) => ({
    label: kernel ? short(kernel) : "whole call",
    title: kernel || "All kernels of one call together.",
    figures: true,
  }));
  const table = grid([{ label: "counter" }, ...head], rows, "Hardware counters");
  table.classList.add("kw-counters");
  return [table, ...(report.metrics_note ? [h("p", { class: "kw-dim" }, report.metrics_note)] : [])];
}

/** Where there is one kernel, it is the whole call: one column says both. */
function joined(metrics: Metric[]): Metric[] {
  const kernels = new Set(metrics.map((one) => one.kernel).filter((kernel) => kernel));
  if (kernels.size !== 1) return metrics;
  const [kernel] = [...kernels] as [string];
  const own = new Set(metrics.filter((one) => one.kernel).map((one) => one.name));
  return metrics.filter((one) => one.kernel || !own.has(one.name)).map((one) => ({ ...one, kernel }));
}

/** In the order of the kernels' lists. What only a later one has stands behind what it follows there. */
function names(metrics: Metric[]): string[] {
  const found: string[] = [];
  for (const kernel of new Set(metrics.map((one) => one.kernel))) {
    let at = -1;
    for (const one of metrics.filter((metric) => metric.kernel === kernel)) {
      const known = found.indexOf(one.name);
      if (known < 0) found.splice(at + 1, 0, one.name);
      at = found.indexOf(one.name);
    }
  }
  return found;
}

function figure({ value, unit }: Metric): string {
  if (unit === "µs") return format.time(value);
  if (unit === "B") return format.bytes(value);
  if (unit === "%") return format.percent(value / 100);
  if (unit === "×") return format.ratio(value);
  const plain = Number.isInteger(value) ? format.count(value) : format.figure(value);
  return unit ? `${plain} ${unit}` : plain;
}

function short(name: string): string {
  return name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 9)}…${name.slice(-8)}`;
}

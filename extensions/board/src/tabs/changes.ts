/** What changed since the parent, and what that did: figures side by side, each with an arrow and a word. */

import type { Detail, Evaluation, Json, Resources } from "../../../protocol";
import { h } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";
import { VERDICTS } from "../verdicts";
import { evaluationOf, grid, heading } from "./parts";

interface Measure {
  name: string;
  title: string;
  of(evaluation: Evaluation): number | null;
  text(value: number): string;
  /** Which way is good; 0 where neither is by itself. */
  better: -1 | 0 | 1;
}

const sum = (kernels: Resources[], of: (kernel: Resources) => number): number | null => (kernels.length ? kernels.reduce((total, kernel) => total + of(kernel), 0) : null);
const most = (kernels: Resources[], of: (kernel: Resources) => number): number | null => (kernels.length ? Math.max(...kernels.map(of)) : null);
const least = (kernels: Resources[], of: (kernel: Resources) => number): number | null => (kernels.length ? Math.min(...kernels.map(of)) : null);

const MEASURES: Measure[] = [
  { name: "time", title: "Of one call.", of: (one) => one.timing?.median_us ?? null, text: format.time, better: -1 },
  { name: "bytes from memory", title: "Distinct bytes touched, modelled.", of: (one) => one.modelled?.dram_bytes ?? null, text: format.bytes, better: -1 },
  { name: "bytes requested", title: "All bytes that the programs ask the L2 for, modelled.", of: (one) => one.modelled?.l2_bytes ?? null, text: format.bytes, better: -1 },
  { name: "launches", title: "Kernels started in one call.", of: (one) => sum(one.resources, (kernel) => kernel.launches), text: String, better: -1 },
  { name: "registers", title: WORDS.registers, of: (one) => most(one.resources, (kernel) => kernel.registers), text: String, better: 0 },
  { name: "spills", title: WORDS.spills, of: (one) => most(one.resources, (kernel) => kernel.spill_bytes), text: (value) => `${value} B`, better: -1 },
  { name: "shared memory", title: WORDS.shared, of: (one) => most(one.resources, (kernel) => kernel.shared_bytes), text: format.bytes, better: 0 },
  { name: "occupancy", title: WORDS.occupancy, of: (one) => least(one.resources, (kernel) => kernel.occupancy), text: format.percent, better: 1 },
  { name: "vector", title: WORDS.vector, of: (one) => least(one.resources, (kernel) => kernel.vector_bytes), text: (value) => `${value} B`, better: 1 },
  { name: "worst error", title: "Over its bound. 1 or less is right.", of: (one) => (one.error_ratio === null ? null : format.number(one.error_ratio)), text: (value) => format.figure(value), better: -1 },
];

export function changes(detail: Detail, parent: Detail | undefined, waiting: string): HTMLElement[] {
  const name = detail.candidate.parents[0];
  if (!name) return [];
  if (!parent) return [heading(`Since ${name}, its parent`), h("p", { class: "kw-dim" }, waiting)];
  const [now, before] = [evaluationOf(detail), evaluationOf(parent)];
  return [heading(`Since ${name}, its parent`), ...differences(detail, parent, now, before), ...(now && before ? [figures(now, before, name)] : [])];
}

/** What is different, in words: choices, parameters and lines. */
function differences(detail: Detail, parent: Detail, now: Evaluation | undefined, before: Evaluation | undefined): HTMLElement[] {
  const out: string[] = [
    ...turned("expert", { expert: parent.candidate.recipe["expert"] ?? "none" }, { expert: detail.candidate.recipe["expert"] ?? "none" }),
    ...turned("choice", without(parent.candidate.recipe), without(detail.candidate.recipe)),
    ...(now && before ? turned("parameter", before.parameters, now.parameters) : []),
  ];
  const [added, removed] = lines(parent.candidate.source, detail.candidate.source);
  out.push(added || removed ? `${format.plural(added, "line")} added, ${removed} removed; see Diff.` : "The source is the same.");
  if (before && now && before.verdict !== now.verdict) out.push(`The parent was ${VERDICTS[before.verdict].word}; this one is ${VERDICTS[now.verdict].word}.`);
  return [h("ul", { class: "kw-evidence" }, ...out.map((line) => h("li", {}, line)))];
}

function without(recipe: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(Object.entries(recipe).filter(([name]) => name !== "expert"));
}

function turned(what: string, before: Record<string, Json>, now: Record<string, Json>): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const text = (value: Json | undefined): string => (value === undefined ? "not set" : typeof value === "string" ? value : JSON.stringify(value));
  return names.filter((name) => text(before[name]) !== text(now[name])).map((name) => `${what === "expert" ? "expert" : `${what} ${name}`}: ${text(before[name])} → ${text(now[name])}`);
}

/** Lines that only one of the two texts has: added, removed. */
function lines(old: string, now: string): [number, number] {
  const counts = new Map<string, number>();
  for (const line of old.split("\n")) counts.set(line, (counts.get(line) ?? 0) + 1);
  let added = 0;
  for (const line of now.split("\n")) {
    const left = counts.get(line) ?? 0;
    if (left) counts.set(line, left - 1);
    else added += 1;
  }
  return [added, [...counts.values()].reduce((total, count) => total + count, 0)];
}

function figures(now: Evaluation, before: Evaluation, parent: string): HTMLElement {
  const alike = !now.timing || !before.timing || now.timing.modelled === before.timing.modelled;
  const rows = MEASURES.flatMap((measure) => {
    const [a, b] = [measure.of(before), measure.of(now)];
    if (a === null && b === null) return [];
    if (measure.name === "time" && !alike) return [h("tr", {}, h("th", { scope: "row" }, "time"), h("td", {}, "–"), h("td", {}, "–"), h("td", {}, "one is measured, the other modelled: they can't be compared"))];
    const [word, tone, arrow] = compare(a, b, measure.better);
    return [h("tr", { title: measure.title },
      h("th", { scope: "row" }, measure.name),
      h("td", { class: "kw-num" }, a === null ? "–" : measure.text(a)),
      h("td", { class: "kw-num" }, b === null ? "–" : measure.text(b)),
      h("td", { class: `kw-change kw-${tone}` }, h("span", { class: "kw-arrow", "aria-hidden": "true" }, arrow), word))];
  });
  const modelled = now.timing?.modelled && alike;
  return grid([{ label: modelled ? "modelled" : "" }, { label: parent }, { label: now.candidate }, { label: "what that means" }], rows, `Figures of ${parent} and ${now.candidate}`);
}

function compare(a: number | null, b: number | null, better: -1 | 0 | 1): [string, "good" | "bad" | "none", string] {
  if (a === null || b === null) return [b === null ? "gone" : "new", "none", "·"];
  if (a === b || Math.abs(a - b) <= 0.005 * Math.max(Math.abs(a), Math.abs(b))) return ["the same", "none", "="];
  const up = b > a;
  const size = a > 0 && b > 0 ? (b / a >= 2 || a / b >= 2 ? `${format.figure(up ? b / a : a / b)}× ` : `${format.percent(Math.abs(b / a - 1))} `) : "";
  const word = `${size}${up ? "more" : "less"}`;
  if (better === 0) return [word, "none", up ? "↑" : "↓"];
  const good = up === (better > 0);
  return [`${word}, ${good ? "better" : "worse"}`, good ? "good" : "bad", up ? "↑" : "↓"];
}

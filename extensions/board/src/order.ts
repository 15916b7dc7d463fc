/** Which rows the table shows, and in which order. Pure: rows in, ids out. */

import type { Row } from "../../protocol";
import { passes, rank } from "./verdicts";

export type Key = "id" | "verdict" | "time" | "eager" | "island" | "proposer" | "plan" | "parent" | "judged" | "tree";

export interface View {
  key: Key;
  down: boolean;
  verdict: string;
  island: string;
  text: string;
}

export interface Line {
  row: Row;
  depth: number;
}

export const INITIAL: View = { key: "time", down: false, verdict: "", island: "", text: "" };

export function arrange(rows: Iterable<Row>, view: View): Line[] {
  const kept = [...rows].filter(filter(view));
  if (view.key === "tree") return tree(kept, view.down);
  const sign = view.down ? -1 : 1;
  if (view.key === "time" || view.key === "eager") {
    // The common order, for thousands of rows on each change: what they are sorted by is worked out once a row.
    const keyed = kept.map((row) => ({ row, depth: 0, by: sign * sortable(row) }));
    return keyed.sort((a, b) => a.by - b.by || a.row.order - b.row.order);
  }
  const compare = COMPARE[view.key];
  kept.sort((a, b) => sign * compare(a, b) || a.order - b.order);
  return kept.map((row) => ({ row, depth: 0 }));
}

function filter(view: View): (row: Row) => boolean {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => {
    if (view.verdict && row.verdict !== view.verdict) return false;
    if (view.island && row.island !== view.island) return false;
    if (!words.length) return true;
    const text = `${row.id} ${row.plan} ${row.proposer} ${row.backend} ${row.diagnosis} ${row.reason} ${row.labels.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

const byText =
  (of: (row: Row) => string) =>
  (a: Row, b: Row): number =>
    of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0;

/** Right variants by time come first; the rest follow by verdict, however the times are turned. */
function byTime(a: Row, b: Row): number {
  return sortable(a) - sortable(b);
}

function sortable(row: Row): number {
  if (passes(row.verdict) && row.time_us !== null) return row.time_us;
  return 1e12 * (1 + rank(row.verdict));
}

const COMPARE: Record<Exclude<Key, "tree">, (a: Row, b: Row) => number> = {
  id: (a, b) => a.order - b.order,
  verdict: (a, b) => rank(a.verdict) - rank(b.verdict) || byTime(a, b),
  time: byTime,
  eager: byTime,
  island: byText((row) => row.island),
  proposer: byText((row) => row.proposer),
  plan: byText((row) => row.plan),
  parent: byText((row) => row.parents[0] ?? ""),
  judged: byText((row) => row.judged_by),
};

/** Parents before their children, indented; a row whose parent is filtered away stands at the root. */
function tree(rows: Row[], down: boolean): Line[] {
  const here = new Set(rows.map((row) => row.id));
  const children = new Map<string, Row[]>();
  for (const row of [...rows].sort((a, b) => (down ? b.order - a.order : a.order - b.order))) {
    const parent = row.parents[0];
    const under = parent !== undefined && parent !== row.id && here.has(parent) ? parent : "";
    const list = children.get(under);
    if (list) list.push(row);
    else children.set(under, [row]);
  }
  const lines: Line[] = [];
  const stack: Line[] = (children.get("") ?? []).map((row) => ({ row, depth: 0 })).reverse();
  for (let line = stack.pop(); line; line = stack.pop()) {
    lines.push(line);
    const below = children.get(line.row.id) ?? [];
    for (let i = below.length - 1; i >= 0; i -= 1) stack.push({ row: below[i]!, depth: line.depth + 1 });
  }
  return lines;
}

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
  if (view.key === "time" || view.key === "eager") {
    // The common order, of thousands of rows at once: what they are sorted by is worked out once a row.
    const sign = view.down ? -1 : 1;
    const keyed = kept.map((row) => ({ line: { row, depth: 0 }, by: sign * sortable(row) }));
    return keyed.sort((a, b) => a.by - b.by || a.line.row.order - b.line.row.order).map(({ line }) => line);
  }
  return kept.sort(comparison(view)).map((row) => ({ row, depth: 0 }));
}

/** The lines after a few rows have changed or come: all others stay in the order that they have. */
export function rearrange(lines: readonly Line[], changed: ReadonlySet<string>, rows: ReadonlyMap<string, Row>, view: View): Line[] {
  if (view.key === "tree") return arrange(rows.values(), view);
  const kept = lines.filter((line) => !changed.has(line.row.id));
  const [shown, compare] = [filter(view), comparison(view)];
  for (const id of changed) {
    const row = rows.get(id);
    if (!row || !shown(row)) continue;
    let [low, high] = [0, kept.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(kept[middle]!.row, row) < 0) low = middle + 1;
      else high = middle;
    }
    kept.splice(low, 0, { row, depth: 0 });
  }
  return kept;
}

/** No two rows are equal to it: those that compare equal stand as they came. */
function comparison(view: View): (a: Row, b: Row) => number {
  const sign = view.down ? -1 : 1;
  const compare = COMPARE[view.key as Exclude<Key, "tree">];
  return (a, b) => sign * compare(a, b) || a.order - b.order;
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

/** Right variants by time come first; the rest follow by verdict and then by time. */
function byTime(a: Row, b: Row): number {
  return sortable(a) - sortable(b);
}

function sortable(row: Row): number {
  if (passes(row.verdict) && row.time_us !== null) return row.time_us;
  return 1e12 * (1 + rank(row.verdict)) + Math.min(row.time_us ?? 9e11, 9e11);
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

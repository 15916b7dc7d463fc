/** The table's columns: a head, a cell that is made once per pooled row, and how to fill it. */

import type { Row } from "../../protocol";
import { h, put, say } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import { glyph } from "./marks";
import type { Key } from "./order";
import type { Store } from "./store";
import { VERDICTS, icon, passes } from "./verdicts";

export interface Column {
  key: Key;
  label: string;
  title: string;
  name: string;
  /** Fills a cell. Cells are used again for other rows, so everything must be set. */
  fill(cell: HTMLElement, row: Row, depth: number, store: Store): void;
}

const DEEPEST = 6;

export const COLUMNS: Column[] = [
  {
    key: "id",
    label: "Variant",
    title: "In the order in which the search asked for them.",
    name: "id",
    fill(cell, row, depth, store) {
      const best = store.header?.best?.id === row.id;
      const pinned = store.header?.pinned === row.id;
      put(
        cell,
        depth > 0 && h("span", { class: "kw-branch", style: `width:${Math.min(depth, DEEPEST) * 12}px`, "aria-hidden": "true" }, "└"),
        h("b", {}, row.id),
        best && h("span", { class: "kw-badge kw-badge-best" }, "best"),
        row.accepted && h("span", { class: "kw-badge kw-badge-accepted" }, "✓", h("span", { class: "kw-sr" }, "accepted")),
        pinned && h("span", { class: "kw-badge" }, "pin", h("span", { class: "kw-sr" }, "pinned")),
      );
      const states = [best && "the best so far", row.accepted && "accepted", pinned && "pinned"].filter(Boolean);
      cell.title = [row.id, ...states, depth ? `generation ${depth + 1} in this tree` : ""].filter(Boolean).join(", ");
    },
  },
  {
    key: "verdict",
    label: "Verdict",
    title: WORDS.verdict,
    name: "verdict",
    fill(cell, row) {
      const look = VERDICTS[row.verdict];
      put(cell, h("span", { class: `kw-verdict kw-${look.tone}` }, icon(row.verdict), h("span", {}, look.word)),
        row.judged_by !== "" && h("span", { class: "kw-by" }, row.judged_by.split(/[ (]/)[0] ?? ""));
      cell.title = `${row.reason || look.means}${row.judged_by ? `\nJudged by ${row.judged_by}` : ""}`;
    },
  },
  {
    key: "time",
    label: "Time",
    title: "Median time of one call. The bar is the share of the floor that it reaches: a full bar is as fast as physics allows.",
    name: "time",
    fill(cell, row, _depth, store) {
      const floor = store.header?.floor_us;
      if (row.time_us === null) {
        put(cell, h("span", { class: "kw-dim" }, "–"));
        cell.title = "No time: it did not run right.";
        return;
      }
      const share = floor ? Math.min(1, floor / row.time_us) : 0;
      put(
        cell,
        h("span", { class: `kw-num${row.modelled ? " kw-num-modelled" : ""}${passes(row.verdict) ? "" : " kw-dim"}` }, format.time(row.time_us)),
        h("span", { class: "kw-bar" }, h("span", { class: `kw-bar-fill${passes(row.verdict) ? "" : " kw-bar-dim"}`, style: `width:${share * 100}%` })),
      );
      const range = row.low_us !== null && row.high_us !== null && !row.modelled ? `, ${format.interval(row.low_us, row.high_us)}` : "";
      cell.title = `${format.time(row.time_us)}${range}${row.modelled ? " (modelled)" : ""}${floor ? `: ${format.percent(share)} of the floor` : ""}`;
    },
  },
  {
    key: "eager",
    label: "vs eager",
    title: `${WORDS.against} Where times are modelled: the share of the modelled eager time, in italics.`,
    name: "eager",
    fill(cell, row, _depth, store) {
      const eager = store.header?.eager?.timing;
      if (row.time_us === null || !eager || eager.modelled !== row.modelled) {
        put(cell, h("span", { class: "kw-dim" }, "–"));
        cell.title = row.time_us === null ? "No time." : "Eager has no time of the same kind.";
      } else if (row.modelled) {
        put(cell, h("span", { class: "kw-num kw-num-modelled" }, format.percent(row.time_us / eager.median_us)));
        cell.title = WORDS.modelledShare;
      } else {
        put(cell, h("span", { class: "kw-num" }, format.ratio(eager.median_us / row.time_us)));
        cell.title = row.speedup === null ? WORDS.against : `${format.ratio(row.speedup)} over ${row.against}, the faster baseline.`;
      }
    },
  },
  {
    key: "island",
    label: "Island",
    title: WORDS.island,
    name: "island",
    fill(cell, row, _depth, store) {
      put(cell, row.island !== "" && glyph(store.island(row.island)), h("span", { class: "kw-cut" }, store.islandShort(row.island) || "–"));
      cell.title = [row.island, store.header?.islands.find((island) => island.name === row.island)?.aim || WORDS.island].filter(Boolean).join(": ");
    },
  },
  {
    key: "proposer",
    label: "Proposer",
    title: WORDS.proposer,
    name: "proposer",
    fill(cell, row) {
      say(cell, row.proposer || "–");
      cell.title = `${row.proposer || "unknown"} (${row.kind})`;
    },
  },
  {
    key: "parent",
    label: "From",
    title: WORDS.lineage,
    name: "parent",
    fill(cell, row) {
      put(
        cell,
        ...row.parents
          .slice(0, 2)
          .map((id) => h("button", { type: "button", class: "kw-link", tabindex: -1, "data-select": id, title: `Select ${id}, its parent` }, id)),
        row.parents.length === 0 && h("span", { class: "kw-dim" }, row.kind === "person" ? "you" : "seed"),
      );
      cell.title = row.parents.length ? `Made from ${row.parents.join(" and ")}` : "Has no parent.";
    },
  },
  {
    key: "plan",
    label: "Plan",
    title: WORDS.plan,
    name: "plan",
    fill(cell, row) {
      say(cell, row.plan || "–");
      cell.title = row.plan;
    },
  },
  {
    key: "judged",
    label: "Judged by",
    title: WORDS.judged,
    name: "judged",
    fill(cell, row) {
      say(cell, row.judged_by || "–");
      cell.title = row.judged_by ? `Judged by ${row.judged_by}` : WORDS.judged;
    },
  },
];

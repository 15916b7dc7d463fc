/**
 * The table's columns: a head, and the cells of a row.
 *
 * A cell is made once for each row in sight and then filled again and again, four rows a frame while the table is scrolled. So its
 * elements stay, only what differs from the row before is written, and most of what stands in a cell needs no clip and no layer.
 */

import type { Row } from "../../protocol";
import { h, put } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import { islandImage, verdictImage } from "./images";
import type { Key } from "./order";
import type { Store } from "./store";
import { VERDICTS, passes } from "./verdicts";

export interface Cell {
  readonly element: HTMLElement;
  /** Shows a row. Cells are used again for other rows, so everything must be set. */
  fill(row: Row, depth: number, store: Store): void;
}

export interface Column {
  key: Key;
  label: string;
  title: string;
  name: string;
  cell(): Cell;
}

const DEEPEST = 6;

export const COLUMNS: Column[] = [
  {
    key: "id",
    label: "Variant",
    title: "In the order in which the search asked for them.",
    name: "id",
    cell() {
      const name = new Text();
      const bold = h("b", {}, name);
      const element = made("id", bold);
      const write = writer(name);
      const about = titles(element);
      let drawn = "";
      return {
        element,
        fill(row, depth, store) {
          const best = store.header?.best?.id === row.id;
          const pinned = store.header?.pinned === row.id;
          write(row.id);
          const around = `${depth} ${best} ${row.accepted} ${pinned}`;
          if (around !== drawn) {
            drawn = around;
            put(
              element,
              depth > 0 && h("span", { class: "kw-branch", style: `width:${Math.min(depth, DEEPEST) * 12}px`, "aria-hidden": "true" }, "└"),
              bold,
              best && h("span", { class: "kw-badge kw-badge-best" }, "best"),
              row.accepted && h("span", { class: "kw-badge kw-badge-accepted" }, "✓", h("span", { class: "kw-sr" }, "accepted")),
              pinned && h("span", { class: "kw-badge" }, "pin", h("span", { class: "kw-sr" }, "pinned")),
            );
            element.classList.toggle("kw-clip", depth > 0 || best || row.accepted || pinned);
          }
          const states = [best && "the best so far", row.accepted && "accepted", pinned && "pinned"].filter(Boolean);
          about([row.id, ...states, depth ? `generation ${depth + 1} in this tree` : ""].filter(Boolean).join(", "));
        },
      };
    },
  },
  {
    key: "verdict",
    label: "Verdict",
    title: WORDS.verdict,
    name: "verdict",
    cell() {
      const icon = h("span", { class: "kw-image", "aria-hidden": "true" });
      const word = new Text();
      const verdict = h("span", {}, icon, h("span", {}, word));
      const by = new Text();
      const element = made("verdict", verdict, h("span", { class: "kw-by" }, by));
      const [write, writeBy, about] = [writer(word), writer(by), titles(element)];
      let drawn = "";
      return {
        element,
        fill(row) {
          const look = VERDICTS[row.verdict];
          if (drawn !== row.verdict) {
            drawn = row.verdict;
            verdict.className = `kw-verdict kw-${look.tone}`;
            icon.style.backgroundImage = verdictImage(row.verdict);
          }
          write(look.word);
          writeBy(row.judged_by.split(/[ (]/)[0] ?? "");
          about(`${row.reason || look.means}${row.judged_by ? `\nJudged by ${row.judged_by}` : ""}`);
        },
      };
    },
  },
  {
    key: "time",
    label: "Time",
    title: "Median time of one call. The bar is the share of the floor that it reaches: a full bar is as fast as physics allows.",
    name: "time",
    cell() {
      const time = new Text();
      const figure = h("span", {}, time);
      const bar = h("span", {});
      const element = made("time", figure, bar);
      const [write, look, lookOfBar, about] = [writer(time), classes(figure), classes(bar), titles(element)];
      return {
        element,
        fill(row, _depth, store) {
          const floor = store.header?.floor_us;
          bar.hidden = row.time_us === null;
          if (row.time_us === null) {
            write("–");
            look("kw-dim");
            about("No time: it did not run right.");
            return;
          }
          const share = floor ? Math.min(1, floor / row.time_us) : 0;
          const passed = passes(row.verdict);
          write(format.time(row.time_us));
          look(`kw-num${row.modelled ? " kw-num-modelled" : ""}${passed ? "" : " kw-dim"}`);
          lookOfBar(passed ? "kw-reached" : "kw-reached kw-reached-dim");
          bar.style.backgroundSize = `${(share * 100).toFixed(1)}% 100%`;
          const range = row.low_us !== null && row.high_us !== null && !row.modelled ? `, ${format.interval(row.low_us, row.high_us)}` : "";
          about(`${format.time(row.time_us)}${range}${row.modelled ? " (modelled)" : ""}${floor ? `: ${format.percent(share)} of the floor` : ""}`);
        },
      };
    },
  },
  {
    key: "eager",
    label: "vs eager",
    title: `${WORDS.against} Where times are modelled: the share of the modelled eager time, in italics.`,
    name: "eager",
    cell() {
      const ratio = new Text();
      const figure = h("span", {}, ratio);
      const element = made("eager", figure);
      const [write, look, about] = [writer(ratio), classes(figure), titles(element)];
      return {
        element,
        fill(row, _depth, store) {
          const eager = store.header?.eager?.timing;
          if (row.time_us === null || !eager || eager.modelled !== row.modelled) {
            write("–");
            look("kw-dim");
            about(row.time_us === null ? "No time." : "Eager has no time of the same kind.");
          } else if (row.modelled) {
            write(format.percent(row.time_us / eager.median_us));
            look("kw-num kw-num-modelled");
            about(WORDS.modelledShare);
          } else {
            write(format.ratio(eager.median_us / row.time_us));
            look("kw-num");
            about(row.speedup === null ? WORDS.against : `${format.ratio(row.speedup)} over ${row.against}, the faster baseline.`);
          }
        },
      };
    },
  },
  {
    key: "island",
    label: "Island",
    title: WORDS.island,
    name: "island",
    cell() {
      const glyph = h("span", { class: "kw-image kw-image-glyph", "aria-hidden": "true" });
      const name = new Text();
      const element = made("island", glyph, h("span", { class: "kw-cut" }, name));
      const [write, about] = [writer(name), titles(element)];
      let drawn = "";
      return {
        element,
        fill(row, _depth, store) {
          const islands = store.header?.islands.length ?? 0;
          if (drawn === `${row.island} ${islands}`) return;
          drawn = `${row.island} ${islands}`;
          glyph.hidden = row.island === "";
          glyph.style.backgroundImage = islandImage(store.island(row.island));
          write(store.islandShort(row.island) || "–");
          about([row.island, store.header?.islands.find((island) => island.name === row.island)?.aim || WORDS.island].filter(Boolean).join(": "));
        },
      };
    },
  },
  {
    key: "proposer",
    label: "Proposer",
    title: WORDS.proposer,
    name: "proposer",
    cell: () => words("proposer", (row) => row.proposer, (row) => `${row.proposer || "unknown"} (${row.kind})`),
  },
  {
    key: "parent",
    label: "From",
    title: WORDS.lineage,
    name: "parent",
    cell() {
      const element = made("parent");
      const about = titles(element);
      let drawn: string | null = null;
      return {
        element,
        fill(row) {
          const now = row.parents.slice(0, 2).join(" ") || (row.kind === "person" ? "/you" : "/seed");
          if (now === drawn) return;
          drawn = now;
          const links = [...element.querySelectorAll("button")];
          if (row.parents.length === 1 && links.length === 1) link(links[0]!, row.parents[0]!);
          else if (row.parents.length) put(element, ...row.parents.slice(0, 2).map((id) => link(h("button", { type: "button", class: "kw-link", tabindex: -1 }), id)));
          else put(element, h("span", { class: "kw-dim" }, now.slice(1)));
          element.classList.toggle("kw-clip", row.parents.length > 1);
          about(row.parents.length ? `Made from ${row.parents.join(" and ")}` : "Has no parent.");
        },
      };
    },
  },
  {
    key: "plan",
    label: "Plan",
    title: WORDS.plan,
    name: "plan",
    cell: () => words("plan", (row) => row.plan, (row) => row.plan),
  },
  {
    key: "judged",
    label: "Judged by",
    title: WORDS.judged,
    name: "judged",
    cell: () => words("judged", (row) => row.judged_by, (row) => (row.judged_by ? `Judged by ${row.judged_by}` : WORDS.judged)),
  },
];

function made(name: string, ...children: Node[]): HTMLElement {
  return h("div", { class: `kw-td kw-col-${name}`, role: "gridcell" }, ...children);
}

/** A cell of nothing but text, cut where it is too long. */
function words(name: string, of: (row: Row) => string, means: (row: Row) => string): Cell {
  const text = new Text();
  const element = made(name, text);
  const [write, about] = [writer(text), titles(element)];
  return {
    element,
    fill(row) {
      write(of(row) || "–");
      about(means(row));
    },
  };
}

function link(element: HTMLButtonElement, id: string): HTMLButtonElement {
  element.textContent = id;
  element.dataset["select"] = id;
  element.title = `Select ${id}, its parent`;
  return element;
}

/** What follows writes only what differs from what was written last. */
function writer(text: Text): (now: string) => void {
  return last((now) => (text.data = now));
}

function titles(element: HTMLElement): (now: string) => void {
  return last((now) => (element.title = now));
}

function classes(element: HTMLElement): (now: string) => void {
  return last((now) => (element.className = now));
}

function last(set: (now: string) => void): (now: string) => void {
  let drawn: string | null = null;
  return (now) => {
    if (now !== drawn) set((drawn = now));
  };
}

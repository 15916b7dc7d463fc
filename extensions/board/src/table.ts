/**
 * The table of variants.
 *
 * Only the rows in sight exist: a pool of elements is filled with what the scroll position asks for, so ten thousand variants cost
 * what thirty do. Screen readers get the true counts through `aria-rowcount` and `aria-rowindex`.
 */

import { COLUMNS } from "./columns";
import type { Cell } from "./columns";
import { h, onResize, perFrame, say } from "./dom";
import { Filters } from "./filters";
import { INITIAL, arrange, rearrange } from "./order";
import type { Key, Line, View } from "./order";
import type { Row } from "../../protocol";
import type { Store } from "./store";

const ROW = 27;
const HEAD = 28;
const SPARE = 6;

/** More changed rows than this are sorted in with all others. */
const FEW = 200;

interface Slot {
  element: HTMLElement;
  cells: Cell[];
  /** What it shows: rows are never changed, others take their place. */
  row: Row | null;
  depth: number;
  around: string;
  position: number;
  selected: boolean;
}

let tables = 0;

export class Table {
  private readonly view: View = { ...INITIAL };
  private readonly filters: Filters;
  private readonly heads = new Map<Key, HTMLElement>();
  private readonly grid: HTMLElement;
  private readonly sorts: HTMLButtonElement[];
  private readonly body = h("div", { class: "kw-tbody", role: "rowgroup" });
  private readonly empty = h("p", { class: "kw-empty" });
  /** Elements that show a row, by its id, and those that show none. */
  private readonly slots = new Map<string, Slot>();
  private readonly spare: Slot[] = [];
  private readonly prefix = `kw-table-${(tables += 1)}`;
  private readonly draw: () => void;
  private lines: readonly Line[] = [];
  /** What `lines` were made of: the store's version and renewals; -1 where the order itself has changed. */
  private arranged = -1;
  private renewed = -1;
  private found = { lines: this.lines, id: "", at: -1 };
  private follow = false;
  /** For how many lines the body has room. */
  private tall = -1;

  constructor(
    parent: Element,
    private readonly store: Store,
    private readonly open: () => void,
    signal: AbortSignal,
  ) {
    this.draw = perFrame(signal, () => this.render());
    this.filters = new Filters(store, this.view, () => {
      this.arranged = -1;
      this.follow = true;
      this.draw();
    });
    const head = h("div", { class: "kw-tr kw-thead", role: "row", "aria-rowindex": 1 });
    for (const column of COLUMNS) {
      const sort = h("button", { type: "button", class: "kw-sort", title: column.title, tabindex: -1 }, column.label);
      sort.addEventListener("click", () => this.sort(column.key));
      const cell = h("div", { class: `kw-th kw-col-${column.name}`, role: "columnheader" }, sort);
      this.heads.set(column.key, cell);
      head.append(cell);
    }
    this.sorts = [...head.querySelectorAll<HTMLButtonElement>("button")];
    this.sorts[0]!.tabIndex = 0;
    head.addEventListener("keydown", (event) => this.walkHeads(event));
    this.grid = h(
      "div",
      { class: "kw-table", role: "grid", tabindex: 0, "aria-label": "Variants", "aria-colcount": COLUMNS.length },
      h("div", { role: "rowgroup", class: "kw-thead-group" }, head),
      this.body,
    );
    parent.append(this.filters.element, this.grid, this.empty);
    this.grid.addEventListener("scroll", this.draw, { passive: true });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("dblclick", () => this.open());
    onResize(this.grid, signal, this.draw);
    store.on("run", signal, this.draw);
    store.on("selected", signal, () => {
      this.follow = true;
      this.draw();
    });
    this.draw();
  }

  /** Puts the keyboard into the rows, or into the search above them. */
  focus(): void {
    this.grid.focus();
  }

  find(): void {
    this.filters.focus();
  }

  /** Selects the variant before or after, as the table stands. */
  step(by: number): void {
    const at = this.position();
    const line = this.lines[Math.min(this.lines.length - 1, Math.max(0, at + by))];
    if (line) this.store.choose(line.row.id);
  }

  /** One of the heads is in the tab order; the arrow keys walk through the others in sight. */
  private walkHeads(event: KeyboardEvent): void {
    const seen = this.sorts.filter((sort) => sort.offsetParent !== null);
    const at = seen.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: seen.length - 1 }[event.key];
    const next = to === undefined || at < 0 ? undefined : seen[(to + seen.length) % seen.length];
    if (!next) return;
    for (const sort of this.sorts) sort.tabIndex = sort === next ? 0 : -1;
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  private sort(key: Key): void {
    this.view.down = this.view.key === key ? !this.view.down : false;
    this.view.key = key;
    this.arranged = -1;
    this.grid.scrollTop = 0;
    this.draw();
  }

  private render(): void {
    this.arrange();
    const total = this.lines.length;
    this.filters.draw(total);
    attribute(this.grid, "aria-rowcount", String(total + 1));
    if (this.tall !== total) this.body.style.height = `${(this.tall = total) * ROW}px`;
    this.grid.hidden = total === 0;
    this.empty.hidden = total !== 0;
    if (total === 0) {
      say(this.empty, this.nothing());
      return;
    }
    const { scrollTop, clientHeight } = this.grid;
    let top = scrollTop;
    if (this.follow) {
      this.follow = false;
      top = this.reveal(this.position(), scrollTop, clientHeight);
    }
    const from = Math.max(0, Math.floor(top / ROW) - SPARE);
    const until = Math.min(total, Math.ceil((top + clientHeight) / ROW) + SPARE);
    this.show(from, until);
    const at = this.position();
    if (at >= from && at < until) attribute(this.grid, "aria-activedescendant", `${this.prefix}-${this.store.selected}`);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  /** Brings the lines up to date with the rows. */
  private arrange(): void {
    const { store } = this;
    if (this.arranged === store.version && this.renewed === store.renewed) return;
    const changed = this.arranged >= 0 && this.renewed === store.renewed ? store.changedSince(this.arranged) : null;
    this.arranged = store.version;
    this.renewed = store.renewed;
    this.lines = changed && changed.size <= FEW ? rearrange(this.lines, changed, store.rows, this.view) : arrange(store.rows.values(), this.view);
    for (const [key, head] of this.heads) {
      attribute(head, "aria-sort", key === this.view.key ? (this.view.down ? "descending" : "ascending") : "none");
    }
  }

  /** Where the selected variant stands; -1 where it is not among those shown. */
  private position(): number {
    const { lines, found } = this;
    const id = this.store.selected;
    if (found.lines !== lines || found.id !== id) this.found = { lines, id, at: lines.findIndex((line) => line.row.id === id) };
    return this.found.at;
  }

  /** A row keeps its element for as long as it is in sight: what scrolls in is filled, what moves is moved. */
  private show(from: number, until: number): void {
    const wanted = new Set<string>();
    for (let position = from; position < until; position += 1) wanted.add(this.lines[position]!.row.id);
    const { header } = this.store;
    const around = `${header?.pinned} ${header?.best?.id} ${header?.floor_us} ${header?.eager?.timing?.median_us} ${header?.islands.length}`;
    for (const [id, slot] of this.slots) {
      if (wanted.has(id)) continue;
      this.slots.delete(id);
      this.spare.push(slot);
    }
    for (let position = from; position < until; position += 1) {
      const line = this.lines[position]!;
      let slot = this.slots.get(line.row.id);
      if (!slot) {
        slot = this.spare.pop() ?? this.slot();
        slot.element.hidden = false;
        this.slots.set(line.row.id, slot);
      }
      this.fill(slot, line, position, around);
    }
    for (const slot of this.spare) slot.element.hidden = true;
  }

  private nothing(): string {
    if (this.store.rows.size) return "No variant passes these filters. Press All, or clear the search.";
    const state = this.store.header?.state;
    if (!this.store.header) return "Reading the run…";
    if (state === "preparing") return "No variants yet: the judge is rebuilding the op and timing its baselines.";
    if (state === "ended") return "This run ended before it had a variant.";
    return "No variants yet. Press Step for one, or Auto to let the search run.";
  }

  private slot(): Slot {
    const cells = COLUMNS.map((column) => column.cell());
    const element = h("div", { class: "kw-tr", role: "row", "aria-selected": "false" }, ...cells.map((cell) => cell.element));
    this.body.append(element);
    return { element, cells, row: null, depth: 0, around: "", position: -1, selected: false };
  }

  /** `around` is what stands outside of a row and shows in it. */
  private fill(slot: Slot, line: Line, position: number, around: string): void {
    const { row, depth } = line;
    const { element } = slot;
    const selected = row.id === this.store.selected;
    if (slot.selected !== selected) element.setAttribute("aria-selected", String((slot.selected = selected)));
    if (slot.position !== position) {
      slot.position = position;
      element.style.top = `${position * ROW}px`;
      element.setAttribute("aria-rowindex", String(position + 2));
    }
    if (slot.row === row && slot.depth === depth && slot.around === around) return;
    if (slot.row?.id !== row.id) {
      element.id = `${this.prefix}-${row.id}`;
      element.dataset["id"] = row.id;
    }
    [slot.row, slot.depth, slot.around] = [row, depth, around];
    for (const cell of slot.cells) cell.fill(row, depth, this.store);
  }

  private click(event: MouseEvent): void {
    const target = event.target as Element;
    const link = target.closest<HTMLElement>("[data-select]");
    const id = link?.dataset["select"] ?? target.closest<HTMLElement>("[data-id]")?.dataset["id"];
    if (id) this.store.choose(id);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.position();
    const page = Math.max(1, Math.floor((this.grid.clientHeight - HEAD) / ROW) - 1);
    const last = this.lines.length - 1;
    const to: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? 0 : at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: last,
    };
    if (event.key in to) {
      const line = this.lines[Math.min(last, Math.max(0, to[event.key]!))];
      if (line) this.store.choose(line.row.id);
    } else if (event.key === "Enter" && at >= 0) {
      this.open();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Scrolls as little as brings a line into sight; the new scroll position. */
  private reveal(position: number, scrollTop: number, clientHeight: number): number {
    if (position < 0) return scrollTop;
    const top = position * ROW;
    const room = clientHeight - HEAD;
    const to = top < scrollTop ? top : top + ROW > scrollTop + room ? top + ROW - room : scrollTop;
    if (to !== scrollTop) this.grid.scrollTop = to;
    return to;
  }
}

/** Sets an attribute only where it differs: an equal one costs a style check all the same. */
function attribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

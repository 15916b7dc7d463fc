/** Above the table: how many of each verdict (click to see only those), the island, a search, and the lineage as a tree. */

import { button, h, put } from "./dom";
import { WORDS } from "./glossary";
import type { View } from "./order";
import type { Store } from "./store";
import { ORDER, VERDICTS, icon } from "./verdicts";

export class Filters {
  readonly element = h("div", { class: "kw-filters" });
  private readonly chips = h("div", { class: "kw-chips", role: "group", "aria-label": "Filter by verdict" });
  private readonly islands = h("select", { class: "kw-select", "aria-label": "Filter by island", title: WORDS.island });
  private readonly search = h("input", { class: "kw-input kw-search", type: "search", placeholder: "Find", "aria-label": "Find in id, plan, reason" });
  private readonly tree: HTMLButtonElement;
  private drawn = "";

  constructor(
    private readonly store: Store,
    private readonly view: View,
    private readonly changed: () => void,
  ) {
    this.tree = button("Lineage", "Show variants under their parents, as a tree.", () => {
      this.view.key = this.view.key === "tree" ? "time" : "tree";
      this.view.down = false;
      this.changed();
    });
    this.islands.addEventListener("change", () => {
      this.view.island = this.islands.value;
      this.changed();
    });
    this.search.addEventListener("input", () => {
      this.view.text = this.search.value;
      this.changed();
    });
    this.element.append(this.chips, this.islands, this.search, this.tree);
  }

  draw(): void {
    this.tree.setAttribute("aria-pressed", String(this.view.key === "tree"));
    const counts = new Map<string, number>();
    for (const row of this.store.rows.values()) counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1);
    const islands = this.store.header?.islands.map((island) => island.name) ?? [];
    const state = JSON.stringify([...counts, this.view.verdict, this.view.island, islands]);
    if (state === this.drawn) return;
    this.drawn = state;
    const held = this.chips.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset["verdict"] : undefined;
    put(
      this.chips,
      this.chip("", "All", this.store.rows.size),
      ...ORDER.filter((verdict) => counts.has(verdict)).map((verdict) => this.chip(verdict, VERDICTS[verdict].word, counts.get(verdict) ?? 0)),
    );
    if (held !== undefined) this.chips.querySelector<HTMLElement>(`[data-verdict="${held}"]`)?.focus();
    put(this.islands, h("option", { value: "" }, "All islands"), ...islands.map((name) => h("option", { value: name, selected: name === this.view.island }, name)));
    this.islands.hidden = islands.length < 2;
  }

  private chip(verdict: string, label: string, count: number): HTMLElement {
    const pressed = this.view.verdict === verdict;
    const chip = button("", verdict === "" ? "Show every verdict." : VERDICTS[verdict as keyof typeof VERDICTS].means, () => {
      this.view.verdict = pressed ? "" : verdict;
      this.changed();
    }, { class: "kw-button kw-filter", "aria-pressed": pressed, "data-verdict": verdict });
    const tone = verdict === "" ? "none" : VERDICTS[verdict as keyof typeof VERDICTS].tone;
    put(chip, verdict !== "" && h("span", { class: `kw-verdict kw-${tone}` }, icon(verdict as keyof typeof VERDICTS)), `${label} `, h("b", {}, String(count)));
    return chip;
  }
}

/** Above the table: which verdicts and islands are shown, a search, the lineage as a tree, and how it stands in a few words. */

import { button, h, put, say } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import type { View } from "./order";
import type { Store } from "./store";
import { ORDER, VERDICTS } from "./verdicts";
import type { AnyVerdict, Tone } from "./verdicts";

/** Options can't hold drawings, so verdicts are marked by a character too. */
const MARKS: Record<Tone, string> = { good: "✓", fair: "≈", bad: "✗", none: "–" };

export class Filters {
  readonly element = h("div", { class: "kw-filters", role: "group", "aria-label": "Filter the variants" });
  private readonly verdicts = h("select", { class: "kw-select", "aria-label": "Filter by verdict", title: WORDS.verdict });
  private readonly islands = h("select", { class: "kw-select", "aria-label": "Filter by island", title: WORDS.island });
  private readonly search = h("input", { class: "kw-input kw-search", type: "search", placeholder: "Find", "aria-label": "Find in id, plan and reason" });
  private readonly tree: HTMLButtonElement;
  private readonly status = h("span", { class: "kw-count", role: "status" });
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
    const apply = (): void => {
      this.view.verdict = this.verdicts.value;
      this.view.island = this.islands.value;
      this.view.text = this.search.value;
      this.changed();
    };
    for (const element of [this.verdicts, this.islands]) element.addEventListener("change", apply);
    this.search.addEventListener("input", apply);
    this.element.append(this.verdicts, this.islands, this.search, this.tree, this.status);
  }

  /** Puts the keyboard into the search. */
  focus(): void {
    this.search.focus();
  }

  /** `shown` rows pass the filters. */
  draw(shown: number): void {
    this.tree.setAttribute("aria-pressed", String(this.view.key === "tree"));
    this.element.hidden = this.store.rows.size === 0;
    const islands = this.store.header?.islands.map((island) => island.name) ?? [];
    const state = JSON.stringify([this.store.version, this.view, islands, shown]);
    if (state === this.drawn) return;
    this.drawn = state;
    const { tally, rows } = this.store;
    options(this.verdicts, [
      ["", `All verdicts (${format.count(rows.size)})`],
      ...ORDER.filter((verdict) => tally.verdict(verdict) > 0 || verdict === this.view.verdict).map((verdict): [string, string] =>
        [verdict, `${MARKS[VERDICTS[verdict].tone]} ${VERDICTS[verdict].word} (${format.count(tally.verdict(verdict))})`]),
    ]);
    this.verdicts.value = this.view.verdict;
    options(this.islands, [["", "All islands"], ...islands.map((name): [string, string] => [name, name])]);
    this.islands.value = this.view.island;
    this.islands.hidden = islands.length < 2;
    const filtered = shown !== rows.size;
    say(this.status, filtered ? `${format.count(shown)} of ${format.count(rows.size)}` : summary(tally.verdicts));
  }
}

/** Sets the options of a list; those that stand already keep their elements, so that an open list stays open. */
function options(select: HTMLSelectElement, wanted: [string, string][]): void {
  const [here, there] = [[...select.options].map((option) => option.value), wanted.map(([value]) => value)];
  if (JSON.stringify(here) !== JSON.stringify(there)) put(select, ...wanted.map(([value]) => h("option", { value })));
  wanted.forEach(([, text], place) => say(select.options[place]!, text));
}

function summary(counts: ReadonlyMap<AnyVerdict, number>): string {
  const tones: Record<Tone, number> = { good: 0, fair: 0, bad: 0, none: 0 };
  for (const [verdict, count] of counts) tones[VERDICTS[verdict].tone] += count;
  return [`${format.count(tones.good)} right`, tones.bad && `${format.count(tones.bad)} failed`].filter(Boolean).join(", ");
}

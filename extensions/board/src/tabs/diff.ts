/** The variant against its parent, the reference, the cell, or any other variant. */

import type { Detail } from "../../../protocol";
import { h, missing, put, say } from "../dom";
import { showDiff } from "../editor";
import type { Tab } from "../inspector";
import { cellNow } from "../notebook";
import type { Store } from "../store";
import { VERDICTS, passes } from "../verdicts";

interface Base {
  value: string;
  label: string;
}

/** More than these are reached by typing their id. */
const LISTED = 150;

export class DiffTab {
  /** What the person chose last; kept while walking through variants, where it makes sense. */
  private choice = "";

  readonly draw: Tab = (panel, detail, store, signal) => {
    const bases = basesOf(detail, store);
    const others = othersOf(detail, store);
    const all = [...bases, ...others];
    if (!all.length) {
      panel.append(missing("There is nothing to compare with yet: no parent, no reference, no other variant."));
      return;
    }
    const select = h("select", { class: "kw-select", "aria-label": "Compare with" });
    put(
      select,
      ...bases.map(option),
      others.length > 0 && h("optgroup", { label: "Other variants" }, ...others.map(option)),
    );
    const wanted = all.some((base) => base.value === this.choice) ? this.choice : all[0]!.value;
    select.value = wanted;
    const typed = h("input", { class: "kw-input kw-id", type: "text", placeholder: "or an id, k12", "aria-label": "Compare with the variant of this id" });
    const status = h("span", { class: "kw-dim", role: "status" });
    const box = h("div", { class: "kw-diff-box kw-fill" });
    panel.append(
      h("div", { class: "kw-bar-line" }, h("label", {}, "Against ", select), store.rows.size > LISTED && typed, status),
      box,
    );
    let life = new AbortController();
    signal.addEventListener("abort", () => life.abort());
    const show = (value: string): void => {
      life.abort();
      life = new AbortController();
      put(box);
      const text = textOf(value, detail, store);
      if (text === null) {
        const failure = store.failure(value.slice(2));
        box.append(missing(failure || `Reading ${value.slice(2)}…`));
        store.on("detail", life.signal, () => {
          if (textOf(value, detail, store) !== null || store.failure(value.slice(2))) show(value);
        });
        return;
      }
      say(status, text === detail.candidate.source ? "The two are equal." : "");
      const label = all.find((base) => base.value === value)?.label ?? value.slice(2);
      showDiff(box, text, detail.candidate.source, [label, detail.candidate.id], life.signal);
    };
    select.addEventListener("change", () => {
      this.choice = select.value;
      show(select.value);
    });
    typed.addEventListener("change", () => {
      const id = typed.value.trim();
      if (store.row(id)) show(`v:${id}`);
      else say(status, `There is no variant ${id}.`);
    });
    show(wanted);
  };
}

function option(base: Base): HTMLOptionElement {
  return h("option", { value: base.value }, base.label);
}

function basesOf(detail: Detail, store: Store): Base[] {
  const bases: Base[] = detail.candidate.parents.filter((id) => store.row(id)).map((id) => ({ value: `v:${id}`, label: `parent ${id}` }));
  if (store.texts.reference) bases.push({ value: "t:reference", label: "the reference" });
  if (store.texts.cell) bases.push({ value: "t:cell", label: "the cell when the run began" });
  if (store.header?.cell && cellNow(store.model, store.header.cell) !== null) bases.push({ value: "t:now", label: "the cell now" });
  const best = store.header?.best?.id;
  if (best && best !== detail.candidate.id && !detail.candidate.parents.includes(best)) bases.push({ value: `v:${best}`, label: `best so far, ${best}` });
  return bases;
}

function othersOf(detail: Detail, store: Store): Base[] {
  const named = new Set([detail.candidate.id, store.header?.best?.id, ...detail.candidate.parents]);
  const rows = [...store.rows.values()].filter((row) => !named.has(row.id));
  rows.sort((a, b) => Number(passes(b.verdict)) - Number(passes(a.verdict)) || b.order - a.order);
  return rows.slice(0, LISTED).map((row) => ({ value: `v:${row.id}`, label: `${row.id}, ${VERDICTS[row.verdict].word}` }));
}

/** The text to compare with; null where it has to be fetched first. */
function textOf(value: string, detail: Detail, store: Store): string | null {
  if (value === "t:reference") return store.texts.reference;
  if (value === "t:cell") return store.texts.cell;
  if (value === "t:now") return cellNow(store.model, store.header?.cell ?? "") ?? store.texts.cell;
  const id = value.slice(2);
  return id === detail.candidate.id ? detail.candidate.source : (store.detail(id)?.candidate.source ?? null);
}

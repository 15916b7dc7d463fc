/** Pieces that several tabs are made of. */

import type { Detail, Evaluation, Row } from "../../../protocol";
import type { Child } from "../dom";
import { h, missing } from "../dom";
import * as format from "../format";

/** The evaluation that stands for the variant; while none does, the last one. */
export function evaluationOf(detail: Detail): Evaluation | undefined {
  return detail.evaluations.find((evaluation) => evaluation.id === detail.shown) ?? detail.evaluations.at(-1);
}

/** A table of names and values; rows without a value are left out. */
export function facts(rows: [string, Child, string?][], caption = ""): HTMLElement {
  return h(
    "table",
    { class: "kw-facts" },
    caption !== "" && h("caption", { class: "kw-sr" }, caption),
    h("tbody", {}, ...rows.filter(([, value]) => value !== "" && value !== null && value !== false).map(([name, value, title]) =>
      h("tr", { title }, h("th", { scope: "row" }, name), h("td", {}, value)))),
  );
}

export function heading(text: string, ...beside: Child[]): HTMLElement {
  return h("h4", { class: "kw-h" }, text, ...beside);
}

/** A table that may be wider than the panel. */
export function grid(head: { label: string; title?: string; figures?: boolean }[], body: HTMLElement[], caption = ""): HTMLElement {
  return h("div", { class: "kw-scroll-x", tabindex: 0, role: "group", "aria-label": caption || "Table" }, h(
    "table",
    { class: "kw-grid-table" },
    caption !== "" && h("caption", { class: "kw-sr" }, caption),
    h("thead", {}, h("tr", {}, ...head.map((column) => h("th", { scope: "col", title: column.title, class: column.figures ? "kw-right" : "" }, column.label)))),
    h("tbody", {}, ...body),
  ));
}

/** Asks which evaluation is meant, where there are several; nothing where there is one. */
export function pickEvaluation(detail: Detail, chosen: string, pick: (id: string) => void): HTMLElement | null {
  if (detail.evaluations.length < 2) return null;
  const select = h("select", { class: "kw-select", "aria-label": "Which evaluation" }, ...detail.evaluations.map((one) =>
    h("option", { value: one.id }, `${one.id}${Object.keys(one.parameters).length ? `: ${format.parameters(one.parameters)}` : ""}`)));
  select.value = chosen;
  select.addEventListener("change", () => pick(select.value));
  return select;
}

/**
 * Draws what belongs to one evaluation: of the one that stands for the variant at first, and anew when `again` is called for it or another.
 * What was drawn before is aborted. `what` says what can be looked at, for a variant that has not been judged.
 */
export function ofEvaluation(
  panel: HTMLElement, detail: Detail & { row: Row }, signal: AbortSignal, what: string,
  draw: (evaluation: string, now: AbortSignal, again: (evaluation: string) => void) => void,
): void {
  const start = evaluationOf(detail);
  if (!start) {
    panel.append(missing(`${detail.row.id} has not been judged yet. ${what} can be looked at as soon as it has been.`));
    return;
  }
  let life = new AbortController();
  signal.addEventListener("abort", () => life.abort());
  const again = (evaluation: string): void => {
    life.abort();
    life = new AbortController();
    draw(evaluation, life.signal, again);
  };
  again(start.id);
}

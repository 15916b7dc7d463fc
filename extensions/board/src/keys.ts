/** Single keys for what is done most, while the board has the focus and nothing is being typed; all are listed behind "?". */

import { button, h } from "./dom";

export interface Shortcut {
  keys: string[];
  says: string;
  act(): void;
}

/** Keys that belong to a part of the board, for the list. */
const ELSEWHERE: [string, [string, string][]][] = [
  ["In the table", [["↑ ↓ PgUp PgDn Home End", "Walk through the variants"], ["Enter", "Go to the variant's tabs"], ["← → on a column's head", "Walk through the heads; Enter sorts"]]],
  ["On the chart", [["← → Home End", "Walk through the evaluations"], ["Enter", "Select the variant"]]],
  ["In the tabs", [["← → Home End", "The tab before or after"]]],
  ["In the compiler's texts", [["↑ ↓ PgUp PgDn", "Walk through the lines; the other side follows"]]],
  ["On a timeline", [["← → ↑ ↓ Home End", "Walk through the slices"], ["+ − 0", "Zoom in, out, show all"], ["Shift ← →, Shift wheel, drag", "Move"], ["Ctrl wheel", "Zoom"]]],
  ["In an editor", [["Escape, then Tab", "Leave it"], ["Ctrl F", "Find"]]],
];

export function mountKeys(root: HTMLElement, shortcuts: Shortcut[]): { help: HTMLElement; open(): void } {
  const dialog = h("dialog", { class: "kw-help", "aria-label": "Keys of the board" });
  const close = button("Close", "Closes this list. Escape does it too.", () => dialog.close());
  const all: Shortcut[] = [...shortcuts, { keys: ["?"], says: "This list", act: () => open() }];
  dialog.append(
    h("div", { class: "kw-bar-line" }, h("h3", { class: "kw-help-title" }, "Keys"), h("span", { class: "kw-gap" }), close),
    h("p", { class: "kw-dim" }, "They work while the board has the focus and you are not typing. Everything can also be reached with Tab and pressed with Enter."),
    list(all.map((one) => [one.keys.join(" or "), one.says])),
    ...ELSEWHERE.flatMap(([where, keys]) => [h("h4", { class: "kw-h" }, where), list(keys)]),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  let from: HTMLElement | null = null;
  dialog.addEventListener("close", () => from?.focus());
  const open = (): void => {
    from = root.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
    dialog.showModal();
    close.focus();
  };
  root.append(dialog);
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open || typing(event.target)) return;
    const found = all.find((one) => one.keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.act();
  });
  const help = button("?", "Keys of the board", open, { class: "kw-button kw-ask", "aria-label": "Keys of the board", "aria-haspopup": "dialog" });
  return { help, open };
}

function list(rows: [string, string][]): HTMLElement {
  return h("dl", { class: "kw-keys" }, ...rows.flatMap(([keys, says]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, says)]));
}

function typing(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, select, textarea, [contenteditable=true], .cm-editor") !== null;
}

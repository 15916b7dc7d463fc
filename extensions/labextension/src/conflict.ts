/** The question after a refused replacement: three texts side by side, with the lines that differ marked. */

import { Dialog, showDialog } from "@jupyterlab/apputils";
import { Widget } from "@lumino/widgets";
import { h } from "../../board/src/dom";

export type Answer = "below" | "replace" | "leave";

/** `base`: what the cell held when the run began; `now`: what it holds; `next`: the accepted code. */
export async function askAboutConflict(base: string, now: string, next: string): Promise<Answer> {
  const body = new Widget({
    node: h("div", { class: "kw-conflict" },
      h("p", {}, "Somebody changed this cell since its run began, so it was not replaced. Nothing has been written yet."),
      h("div", { class: "kw-conflict-texts" },
        text("When the run began", base, now),
        text("In the cell now", now, base),
        text("The accepted code", next, now),
      ),
    ),
  });
  const leave = Dialog.cancelButton({ label: "Leave it" });
  const replace = Dialog.createButton({
    label: "Replace what is there now", caption: "Ctrl+Z in the cell takes it back.", accept: true, displayType: "warn",
  });
  const below = Dialog.createButton({ label: "Insert below", caption: "A new cell below; this one stays as it is.", accept: true });
  const { button } = await showDialog({ title: "The cell has changed", body, buttons: [leave, replace, below], defaultButton: 2 });
  if (!button.accept) return "leave";
  return button.label === below.label ? "below" : "replace";
}

/** One text under its title; the lines that `other` has not are marked. */
function text(title: string, shown: string, other: string): HTMLElement {
  const lines = shown.split("\n");
  const both = shared(lines, other.split("\n"));
  return h("section", {},
    h("h3", {}, title),
    h("pre", { tabindex: 0, "aria-label": title },
      ...(shown ? lines.flatMap((line, place) => [both.has(place) || !line ? line : h("mark", {}, line), place + 1 < lines.length && "\n"]) : ["(empty)"]),
    ),
  );
}

/** Places of the lines that stand in both texts in the same order: of the longest such choice. */
function shared(lines: string[], others: string[]): Set<number> {
  const longest = Array.from({ length: lines.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = lines.length - 1; i >= 0; i -= 1) {
    for (let j = others.length - 1; j >= 0; j -= 1) {
      longest[i]![j] = lines[i] === others[j] ? longest[i + 1]![j + 1]! + 1 : Math.max(longest[i + 1]![j]!, longest[i]![j + 1]!);
    }
  }
  const found = new Set<number>();
  for (let i = 0, j = 0; i < lines.length && j < others.length; ) {
    if (lines[i] === others[j]) {
      found.add(i);
      [i, j] = [i + 1, j + 1];
    } else if (longest[i + 1]![j]! >= longest[i]![j + 1]!) i += 1;
    else j += 1;
  }
  return found;
}

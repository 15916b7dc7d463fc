/** The question after a refused replacement: three texts side by side, with the lines that differ marked. */

import { Dialog, showDialog } from "@jupyterlab/apputils";
import { Widget } from "@lumino/widgets";
import { h } from "../../board/src/dom";
import { edit } from "../../board/src/edits";

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

/** One text under its title; the lines that `other` does not have at that place are marked. */
function text(title: string, shown: string, other: string): HTMLElement {
  const { start, end } = edit(shown, other);
  const marked = shown.slice(start, end);
  return h("section", {},
    h("h3", {}, title),
    h("pre", { tabindex: 0, "aria-label": title },
      shown.slice(0, start),
      marked !== "" && h("mark", {}, marked),
      shown.slice(end) || (shown ? "" : "(empty)"),
    ),
  );
}

/** A variant changed by hand and handed to the judge. Unsent edits are kept per variant for as long as the board is open. */

import { button, enable, h, say } from "../dom";
import { editCode } from "../editor";
import type { Tab } from "../inspector";
import { act } from "../requests";
import type { Say } from "../requests";
import { unheard } from "../states";

export class EditTab {
  private readonly drafts = new Map<string, string>();

  constructor(private readonly report: Say) {}

  readonly draw: Tab = (panel, detail, store, signal) => {
    const { candidate } = detail;
    const over = unheard(store.header);
    const state = h("span", { class: "kw-dim", role: "status" });
    let text = this.drafts.get(candidate.id) ?? candidate.source;
    const submit = button("Submit variant", "", () => {
      act(store, "submit", text, (answer, level) => {
        this.report(answer, level);
        say(state, answer);
        if (level === "info") this.drafts.delete(candidate.id);
      }, detail.row.evaluations > 0 ? candidate.id : "");
    }, { class: "kw-button kw-primary", "data-verb": "submit" });
    const restart = button("Undo all edits", "Goes back to the variant's own source.", () => {
      this.drafts.delete(candidate.id);
      panel.replaceChildren();
      this.draw(panel, detail, store, signal);
    });
    const update = (): void => {
      const changed = text !== candidate.source;
      enable(submit, over === "" && changed, over || (changed ? "Hands this source to the judge as a variant of yours." : "Change something first."));
      enable(restart, changed, changed ? "Goes back to the variant's own source." : "Nothing is changed.");
      say(state, over || (changed ? "edited, not submitted" : `a copy of ${candidate.id}: change it, then submit it`));
    };
    const box = h("div", { class: "kw-code-box kw-fill" });
    panel.append(h("div", { class: "kw-bar-line" }, submit, restart, state), box);
    editCode(box, text, `Edit ${candidate.id}`, (now) => {
      text = now;
      if (now === candidate.source) this.drafts.delete(candidate.id);
      else this.drafts.set(candidate.id, now);
      update();
    }, signal);
    update();
  };
}

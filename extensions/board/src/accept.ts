/**
 * Accept: the variant is judged again by a fresh judge, its code comes back, and this browser puts it into the notebook.
 *
 * Where the browser can't, or the notebook does not take it, the panel shows the next step down the ladder: the line magic, then the
 * clipboard. A cell that changed meanwhile is never overwritten; the three texts are shown instead.
 */

import type { AcceptMessage, Place, Row } from "../../protocol";
import { copyButton } from "./clipboard";
import { offerChange } from "../../bridge";
import { consentTo } from "./consent";
import { button, h, put } from "./dom";
import { showCode } from "./editor";
import { apply, canReach, cellNow } from "./notebook";
import type { Change } from "./notebook";
import { newRequest } from "./requests";
import { sha256 } from "./sha256";
import type { Store } from "./store";

export class Accept {
  readonly element = h("div", { class: "kw-accept", role: "status", "aria-live": "polite", hidden: true });
  private request = "";
  private views = new AbortController();

  constructor(
    private readonly store: Store,
    signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.views.abort());
    store.on("selected", signal, () => {
      if (!this.element.dataset["busy"]) this.close();
    });
  }

  /** Has it judged and put into the notebook; where that needs the person's consent, asks for that first. */
  begin(row: Row, place: Place): void {
    const means = consentTo(row);
    if (means) this.ask(row.id, place, means);
    else this.start(row.id, place, false);
  }

  private ask(id: string, place: Place, means: string): void {
    this.tell("fair", `${id}: ${means}`, button("Accept all the same", "Judges it once more, then puts it into the notebook. Nothing is run.", () => this.start(id, place, true), { class: "kw-button kw-primary", "data-verb": "consent" }));
  }

  private start(id: string, place: Place, consent: boolean): void {
    const request = newRequest();
    this.request = request;
    this.store.hear(request, (message) => {
      if (request !== this.request) return;
      if (message.type === "accept") this.take(message);
      else if (message.type === "said") this.tell("bad", message.text);
    });
    this.element.dataset["busy"] = "yes";
    this.tell("busy", `Judging ${id} once more, with new seeds in a fresh process…`);
    this.store.model.send({ type: "accept", request, id, place, consent });
  }

  private take(message: AcceptMessage): void {
    if (message.stage === "judging") {
      this.tell("busy", message.message);
      return;
    }
    delete this.element.dataset["busy"];
    if (message.stage === "refused" && message.consent) {
      // What the search's judging had not shown.
      this.ask(message.id, message.place, message.message);
      return;
    }
    if (message.stage === "refused") {
      this.tell("bad", `${message.id} was not accepted: ${message.message}`);
      return;
    }
    this.put(message, {
      code: message.code,
      place: message.place,
      cell: message.cell,
      expected: message.expected_hash || (this.store.texts.cell ? sha256(this.store.texts.cell) : ""),
      provenance: message.provenance,
      widget: message.widget,
    });
  }

  private async put(message: AcceptMessage, change: Change): Promise<void> {
    const outcome = (await offerChange(this.element, change, this.store.texts.cell)) ?? apply(this.store.model, change);
    // Asked about a changed cell, the person may have chosen the other place.
    const place: Place = outcome.kind === "applied" ? (outcome.before ? "replace" : "below") : change.place;
    const report = (ok: boolean, cell: string, before: string, after: string, reason: string): void =>
      this.store.model.send({ type: "applied", request: message.request, id: message.id, ok, place, cell, before, after, reason });
    if (outcome.kind === "applied") {
      report(true, outcome.cell, outcome.before, outcome.after, "");
      const where = place === "below" ? "Put into a new cell below" : "Put into this run's cell; Ctrl+Z there takes it back";
      this.tell("good", `${where}. It has not been run. ${message.message}`, copyButton(() => change.code));
    } else if (outcome.kind === "changed") {
      report(false, change.cell, outcome.before, "", "the cell has changed");
      this.conflict(message, change, outcome.now);
    } else {
      report(false, change.cell, "", "", outcome.reason);
      this.ladder(message, change.code, outcome.reason);
    }
  }

  /** The cell is not what was captured: nothing is written, and the person sees all three texts. */
  private conflict(message: AcceptMessage, change: Change, now: string): void {
    const texts: [string, string][] = [
      ["The cell when the run began", this.store.texts.cell],
      ["The cell now", now],
      ["The accepted code", change.code],
    ];
    this.tell(
      "bad",
      "The cell has changed since the run began, so it was not replaced.",
      button("Insert below instead", "Leaves the cell as it is.", () => this.put(message, { ...change, place: "below" }), { class: "kw-button kw-primary" }),
      copyButton(() => change.code),
    );
    for (const [title, text] of texts) {
      const box = h("div", { class: "kw-code-box" });
      this.element.append(h("details", {}, h("summary", {}, title), box));
      showCode(box, text, title, this.views.signal);
    }
  }

  private ladder(message: AcceptMessage, code: string, reason: string): void {
    const magic = `%evolve_kernel accept ${message.id}`;
    const box = h("div", { class: "kw-code-box" });
    this.tell("fair", `${message.id} passed, but ${reason}. Two other ways:`);
    this.element.append(
      h("ol", { class: "kw-ladder" },
        h("li", {}, "Run ", h("code", {}, magic), " in an empty cell: it is replaced by the code. ", copyButton(() => magic, "Copy command")),
        h("li", {}, "Copy the code into a cell yourself. ", copyButton(() => code)),
      ),
      h("details", {}, h("summary", {}, "The code"), box),
    );
    showCode(box, code, "Accepted code", this.views.signal);
  }

  private tell(tone: "good" | "fair" | "bad" | "busy", text: string, ...actions: HTMLElement[]): void {
    this.views.abort();
    this.views = new AbortController();
    this.element.hidden = false;
    this.element.dataset["tone"] = tone;
    const dismiss = tone === "busy" ? null : button("Dismiss", "Hides this message.", () => this.close(), { class: "kw-link kw-dismiss" });
    put(this.element, h("p", {}, h("span", {}, text), " ", ...actions, dismiss));
  }

  private close(): void {
    this.views.abort();
    this.element.hidden = true;
    put(this.element);
  }
}

/** Whether the notebook's own cell can be replaced from here, and if not, why. */
export function replaceable(store: Store): string {
  if (!store.header?.cell) return "This run did not start from a notebook cell.";
  if (!canReach(store.model)) return "";
  return cellNow(store.model, store.header.cell) === null ? "The cell of this run is no longer in the notebook." : "";
}

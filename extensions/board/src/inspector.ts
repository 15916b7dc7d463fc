/** One variant, from all sides: what it is, what can be done with it, and the tabs. */

import type { Detail, Row } from "../../protocol";
import { Accept, replaceable } from "./accept";
import { consentTo } from "./consent";
import { button, enable, h, missing, put, say } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import { Inspections } from "./inspections";
import { glyph } from "./marks";
import { act } from "./requests";
import { unheard } from "./states";
import type { Store } from "./store";
import { codeTab } from "./tabs/code";
import { CompilerTab } from "./tabs/compiler";
import { DiffTab } from "./tabs/diff";
import { EditTab } from "./tabs/edit";
import { evidenceTab } from "./tabs/evidence";
import { logTab, runLog } from "./tabs/log";
import { MemoryTab } from "./tabs/memory";
import { promptTab } from "./tabs/prompt";
import { TraceTab } from "./tabs/trace";
import { whyTab } from "./tabs/why";
import { VERDICTS, icon } from "./verdicts";

/** Draws a tab for a variant; the signal ends when another is drawn. */
export type Tab = (panel: HTMLElement, detail: Detail & { row: Row }, store: Store, signal: AbortSignal) => void;

let inspectors = 0;

export class Inspector {
  private readonly prefix = `kw-inspector-${(inspectors += 1)}`;
  private readonly head = h("div", { class: "kw-inspector-head" });
  private readonly answer = h("span", { class: "kw-answer", role: "status", "aria-live": "polite" });
  private readonly banLine: HTMLElement;
  private readonly banInput = h("input", { class: "kw-input", type: "text", "aria-label": "The idea to ban" });
  private readonly verbs: HTMLElement;
  private readonly accept: Accept;
  private readonly panel: HTMLElement;
  private readonly tabs = new Map<string, { tab: Tab; button: HTMLButtonElement }>();
  private readonly buttons: Record<"accept" | "replace" | "branch" | "pin" | "ban", HTMLButtonElement>;
  private current = "Why";
  private drawn = "";
  private life = new AbortController();

  constructor(
    parent: Element,
    private readonly store: Store,
    widen: HTMLElement,
    signal: AbortSignal,
  ) {
    this.accept = new Accept(store, signal);
    const edit = new EditTab((text, level) => this.report(text, level));
    const diff = new DiffTab();
    const inspections = new Inspections(store);
    const list = h("div", { class: "kw-tablist", role: "tablist", "aria-label": "About this variant" });
    this.panel = h("div", { class: "kw-tabpanel", role: "tabpanel", id: `${this.prefix}-panel`, tabindex: 0 });
    const all: [string, Tab][] = [
      ["Why", whyTab],
      ["Code", codeTab],
      ["Diff", diff.draw],
      ["Compiler", new CompilerTab(inspections).draw],
      ["Memory", new MemoryTab(inspections).draw],
      ["Trace", new TraceTab(inspections).draw],
      ["Prompt", promptTab],
      ["Evidence", evidenceTab],
      ["Edit", edit.draw],
      ["Log", logTab],
    ];
    for (const [name, tab] of all) {
      const control = h("button", {
        type: "button", class: "kw-tab", role: "tab", id: `${this.prefix}-${name}`, "aria-controls": `${this.prefix}-panel`,
      }, name);
      control.addEventListener("click", () => this.show(name));
      this.tabs.set(name, { tab, button: control });
      list.append(control);
    }
    list.addEventListener("keydown", (event) => this.key(event));
    const answer = (text: string, level: "info" | "error"): void => this.report(text, level);
    this.buttons = {
      accept: button("Accept", "", () => this.start("below"), { class: "kw-button kw-primary", "data-verb": "accept" }),
      replace: button("Replace cell", "", () => this.start("replace"), { "data-verb": "replace" }),
      branch: button("Branch", WORDS.branch, () => act(store, "branch", store.selected, answer), { "data-verb": "branch" }),
      pin: button("Pin", WORDS.pin, () => act(store, "pin", store.selected, answer), { "data-verb": "pin" }),
      ban: button("Ban idea", WORDS.ban, () => this.askBan(), { "data-verb": "ban" }),
    };
    this.banLine = h("div", { class: "kw-ban", hidden: true }, this.banInput,
      button("Ban this", WORDS.ban, () => this.ban()),
      button("Never mind", "Bans nothing.", () => (this.banLine.hidden = true)));
    this.banInput.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.ban();
      if (event.key === "Escape") this.banLine.hidden = true;
    });
    this.verbs = h("div", { class: "kw-inspector-verbs", role: "group", "aria-label": "This variant" }, ...Object.values(this.buttons), this.answer, h("span", { class: "kw-gap" }), widen);
    parent.append(this.head, this.verbs, this.banLine, this.accept.element, list, this.panel);
    signal.addEventListener("abort", () => this.life.abort());
    store.on("selected", signal, () => {
      this.banLine.hidden = true;
      say(this.answer, "");
      this.render();
    });
    store.on("detail", signal, () => this.render());
    store.on("run", signal, () => this.render());
    this.render();
  }

  /** Puts the keyboard into the inspector. */
  focus(): void {
    this.tabs.get(this.current)?.button.focus();
  }

  /** Opens the tab at a place, counted from 0, and puts the keyboard into it. */
  open(place: number): void {
    const name = [...this.tabs.keys()][place];
    if (!name) return;
    this.show(name);
    this.focus();
  }

  private show(name: string): void {
    this.current = name;
    this.drawn = "";
    this.render();
    this.tabs.get(name)?.button.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  get names(): string[] {
    return [...this.tabs.keys()];
  }

  private render(): void {
    const { selected } = this.store;
    const row = this.store.row(selected);
    for (const [name, { button: control }] of this.tabs) {
      control.setAttribute("aria-selected", String(name === this.current));
      control.tabIndex = name === this.current ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `${this.prefix}-${this.current}`);
    this.verbs.hidden = !row;
    if (!row) {
      this.blank(this.store.rows.size ? "Select a variant in the table or on the chart to see its code, its verdict and why it is as fast as it is." : "Here you will read a variant's code, how it differs from its parent, and why it is as fast as it is. There is none yet.");
      return;
    }
    this.renderHead(row);
    this.renderVerbs(row);
    const detail = this.store.detail(selected);
    if (!detail) {
      const failure = this.store.failure(selected);
      this.blank(failure ? `${selected} could not be read: ${failure}` : `Reading ${selected}…`, row);
      return;
    }
    // The log goes on for as long as the run does; the other tabs change with their variant only.
    const log = this.current === "Log" ? (this.store.log.at(-1)?.seq ?? 0) : 0;
    const state = `${this.current} ${selected} ${row.evaluations} ${detail.children.length} ${log}`;
    if (state === this.drawn && this.panel.childElementCount) return;
    if (this.current === "Edit" && this.drawn.startsWith(`Edit ${selected} `) && this.panel.childElementCount) return;
    this.drawn = state;
    this.life.abort();
    this.life = new AbortController();
    put(this.panel);
    this.tabs.get(this.current)?.tab(this.panel, { ...detail, row }, this.store, this.life.signal);
  }

  private blank(text: string, row?: Row): void {
    this.drawn = "";
    this.life.abort();
    this.life = new AbortController();
    if (!row) put(this.head, h("span", { class: "kw-panel-title" }, "Variant"));
    // The run's own log needs no variant, and says why there is none.
    if (!row && this.current === "Log") put(this.panel, ...runLog(this.store, ""));
    else put(this.panel, missing(text));
  }

  private renderHead(row: Row): void {
    const look = VERDICTS[row.verdict];
    const modelled = row.modelled && row.time_us !== null;
    put(
      this.head,
      h("b", { class: "kw-inspector-id" }, row.id),
      h("span", { class: `kw-verdict kw-${look.tone}`, title: look.means }, icon(row.verdict), h("span", {}, look.word)),
      row.time_us !== null && h("span", { class: "kw-num" }, format.time(row.time_us)),
      modelled && h("span", { class: "kw-modelled", title: WORDS.modelled }, "modelled"),
      row.judged_by !== "" && row.verdict !== "not_judged" && h("span", { class: "kw-dim", title: WORDS.judged }, `by ${row.judged_by}`),
      h("span", { class: "kw-gap" }),
      row.island !== "" && h("span", { class: "kw-dim kw-nowrap", title: WORDS.island }, glyph(this.store.island(row.island)), ` ${row.island}`),
      ...row.parents.map((id) => button(`from ${id}`, `Select ${id}`, () => this.store.choose(id), { class: "kw-link" })),
    );
  }

  private renderVerbs(row: Row): void {
    const header = this.store.header;
    const consent = consentTo(row);
    const passes = row.verdict === "right" || consent !== "";
    const why = passes ? "" : row.verdict === "proposed" ? "It has not been judged yet." : `Only right variants can be accepted; this one is ${VERDICTS[row.verdict].word}.`;
    const below = "Judges it once more with new seeds, then puts plain code into a new cell below. Nothing is run.";
    enable(this.buttons.accept, passes, why || (consent ? `Asks for your consent first. ${consent}` : below));
    this.buttons.accept.textContent = consent ? "Accept…" : "Accept";
    const cannot = why || replaceable(this.store);
    enable(this.buttons.replace, cannot === "", cannot || "Accepts it into this run's own cell, if nobody has changed that meanwhile. Nothing is run.");
    const over = unheard(header);
    enable(this.buttons.branch, over === "", over || WORDS.branch);
    const pinned = header?.pinned === row.id;
    enable(this.buttons.pin, over === "" && !pinned, over || (pinned ? "It is pinned." : WORDS.pin));
    this.buttons.pin.textContent = pinned ? "Pinned" : "Pin";
    enable(this.buttons.ban, over === "", over || WORDS.ban);
  }

  private start(place: "below" | "replace"): void {
    const row = this.store.row(this.store.selected);
    if (row) this.accept.begin(row, place);
  }

  private askBan(): void {
    this.banInput.value = this.store.row(this.store.selected)?.plan ?? "";
    this.banLine.hidden = false;
    this.banInput.focus();
    this.banInput.select();
  }

  private ban(): void {
    const text = this.banInput.value.trim();
    if (!text) return;
    this.banLine.hidden = true;
    act(this.store, "ban", text, (said, level) => this.report(said, level));
  }

  private report(text: string, level: "info" | "error"): void {
    say(this.answer, text);
    this.answer.dataset["level"] = level;
  }

  private key(event: KeyboardEvent): void {
    const names = [...this.tabs.keys()];
    const at = names.indexOf(this.current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    this.show(names[(to + names.length) % names.length]!);
    this.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}

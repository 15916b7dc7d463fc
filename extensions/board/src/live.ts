/**
 * What goes on now: the budget as it burns, and what models write while they write it.
 *
 * Python says what was spent with each evaluation. Between two of these the seconds run on here, and the tokens of answers that are
 * still being written are estimated from their length; both are marked so.
 */

import type { Budget, Header } from "../../protocol";
import { button, h, say } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import { act } from "./requests";
import type { Say } from "./requests";
import { isStored } from "./states";
import type { Store } from "./store";
import type { Answer } from "./writings";

const TICK = 500;
/** The end of an answer that is shown, in characters. All of it is in the Prompt tab once it is whole. */
const TAIL = 6000;

interface Meter {
  element: HTMLElement;
  set(text: string, share: number | null, title: string): void;
}

export function mountLive(parent: HTMLElement, store: Store, signal: AbortSignal): void {
  const meters = {
    evaluations: meter("Judged"),
    seconds: meter("Time"),
    gpu: meter("GPU time"),
    tokens: meter("Tokens"),
    money: meter("Money"),
  };
  const burn = h("div", { class: "kw-burn", role: "group", "aria-label": "Budget, as it is used" }, ...Object.values(meters).map((one) => one.element));
  const answer = h("span", { class: "kw-answer", role: "status", "aria-live": "polite" });
  const panes = h("div", { class: "kw-panes" });
  const spoken = h("span", { class: "kw-sr", role: "status", "aria-live": "polite" });
  parent.append(burn, panes, answer, spoken);
  const report: Say = (text, level) => {
    say(answer, text);
    answer.dataset["level"] = level;
  };
  const shown = new Map<string, Pane>();
  let since = performance.now();
  let charged = "";

  const draw = (): void => {
    const header = store.header;
    store.writings.forget();
    const answers = [...store.writings.answers.values()];
    const burning = header !== null && !isStored(header) && (header.state === "running" || header.state === "stopping" || header.state === "preparing");
    parent.hidden = !burning && answers.length === 0;
    if (parent.hidden || !header) return;
    drawBurn(header, meters, store, burning && header.state === "running" ? (performance.now() - since) / 1000 : 0);
    for (const [brief, pane] of shown) {
      if (store.writings.answers.has(brief)) continue;
      pane.element.remove();
      shown.delete(brief);
    }
    for (const one of answers) {
      let pane = shown.get(one.brief);
      if (!pane) {
        pane = makePane(() => act(store, "cancel", "", report));
        shown.set(one.brief, pane);
        panes.append(pane.element);
        say(spoken, `${one.model} is writing an answer to ${one.brief}`);
      }
      pane.draw(one);
    }
  };
  store.on("run", signal, () => {
    const header = store.header;
    const now = header ? `${header.state} ${header.spent.seconds}` : "";
    if (now !== charged) {
      charged = now;
      since = performance.now();
    }
    draw();
  });
  store.on("writing", signal, draw);
  const timer = setInterval(() => {
    if (!parent.hidden) draw();
  }, TICK);
  signal.addEventListener("abort", () => clearInterval(timer));
  parent.hidden = true;
}

function drawBurn(header: Header, meters: Record<"evaluations" | "seconds" | "gpu" | "tokens" | "money", Meter>, store: Store, running: number): void {
  const { budget, spent } = header;
  const flying = store.tally.verdict("proposed");
  const use = (name: keyof typeof meters, of: keyof Budget, text: (value: number) => string, now: number, note: string, sure: boolean): void => {
    const cap = budget[of];
    const mark = sure ? "" : "≈ ";
    meters[name].set(`${mark}${text(now)}${cap === null ? "" : ` of ${text(cap)}`}${note}`, cap === null ? null : cap > 0 ? now / cap : 1,
      `${cap === null ? "There is no cap on this." : "The run ends by itself when this is used up."}${sure ? "" : " Estimated between two judgements."}`);
    meters[name].element.hidden = cap === null && now === 0 && name !== "evaluations" && name !== "seconds";
  };
  use("evaluations", "evaluations", format.count, spent.evaluations ?? 0, flying ? `, ${flying} on the way` : "", true);
  use("seconds", "seconds", format.duration, (spent.seconds ?? 0) + running, "", running === 0);
  use("gpu", "gpu_seconds", format.duration, spent.gpu_seconds ?? 0, "", true);
  const writing = store.writings.tokens;
  use("tokens", "tokens", format.count, (spent.tokens ?? 0) + writing, "", writing === 0);
  use("money", "money", format.money, spent.money ?? 0, "", true);
}

function meter(label: string): Meter {
  const value = h("span", { class: "kw-burn-value" });
  const bar = h("span", { class: "kw-meter-fill" });
  const track = h("span", { class: "kw-meter", "aria-hidden": "true" }, bar);
  const element = h("div", { class: "kw-burn-item" }, h("span", { class: "kw-burn-label", title: WORDS.budget }, label), value, track);
  return {
    element,
    set(text, share, title) {
      say(value, text);
      element.title = title;
      track.hidden = share === null;
      bar.style.width = `${Math.min(100, (share ?? 0) * 100)}%`;
      const high = share !== null && share >= 0.9;
      element.classList.toggle("kw-burn-high", high);
      value.dataset["note"] = !high ? "" : share >= 1 ? "used up" : "nearly used up";
    },
  };
}

interface Pane {
  element: HTMLElement;
  draw(answer: Answer): void;
}

function makePane(cancel: () => void): Pane {
  const title = h("b", {});
  const facts = h("span", { class: "kw-dim" });
  const stop = button("Cancel run", WORDS.cancel, cancel);
  // It changes many times a second, so it is no live region: who begins and ends is said beside it.
  const text = h("pre", { class: "kw-typing", tabindex: 0, "aria-label": "The answer so far" });
  const element = h("section", { class: "kw-pane", "aria-label": "A model at work" }, h("div", { class: "kw-bar-line" }, title, facts, h("span", { class: "kw-gap" }), stop), text);
  let drawn = "";
  return {
    element,
    draw(answer) {
      const seconds = Math.max(0, ((answer.ended || performance.now()) - answer.began) / 1000);
      say(title, answer.model || "a model");
      const tokens = Math.ceil(answer.text.length / 3.5);
      const state = answer.ended ? "whole" : answer.text ? "writing" : answer.failed ? "asking again" : "thinking";
      say(facts, `for ${answer.brief} · ${state} · ≈ ${format.count(tokens)} tokens in ${format.duration(seconds)}`);
      facts.title = answer.why ? `Why this model: ${answer.why}` : "";
      stop.hidden = answer.ended > 0;
      element.classList.toggle("kw-pane-done", answer.ended > 0);
      const cut = answer.text.length > TAIL ? `…${answer.text.slice(-TAIL)}` : answer.text;
      const now = cut || (answer.failed ? `The last attempt failed: ${answer.failed}` : "Nothing has come yet.");
      if (now === drawn) return;
      drawn = now;
      const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 30;
      text.textContent = now;
      if (atEnd) requestAnimationFrame(() => (text.scrollTop = text.scrollHeight));
    },
  };
}


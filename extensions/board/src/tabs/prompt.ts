/** How a variant came to be written: what was asked, of whom and why of them, what came back, and what it cost. */

import type { AskedBrief, ModelCall, Prompt, PromptMessageText } from "../../../protocol";
import { copyButton } from "../clipboard";
import { h, missing, put } from "../dom";
import * as format from "../format";
import type { Tab } from "../inspector";
import type { Store } from "../store";
import { VERDICTS } from "../verdicts";
import { facts, grid } from "./parts";

export const promptTab: Tab = (panel, detail, store, signal) => {
  const { id } = detail.candidate;
  const draw = (): void => {
    const found = store.prompt(id);
    if (found === undefined) put(panel, missing(`Reading what was asked for ${id}…`));
    else if (typeof found === "string") put(panel, missing(`What was asked for ${id} can't be read: ${found}`));
    else put(panel, ...all(found, detail.candidate.proposer, store));
  };
  store.on("detail", signal, () => {
    if (!panel.querySelector(".kw-asked")) draw();
  });
  draw();
};

function all(prompt: Prompt, proposer: string, store: Store): HTMLElement[] {
  const { brief, calls } = prompt;
  return [
    h("p", { class: "kw-asked" }, summary(prompt, proposer)),
    ...calls.flatMap(call),
    ...chosen(prompt),
    ...cited(prompt),
    ...(brief ? asked(brief, store) : []),
    ...(prompt.rendered.length ? [h("h4", { class: "kw-h" }, "The prompt that a model would have got"), note(prompt.rendered), ...messages(prompt.rendered)] : []),
    ...(prompt.unrendered ? [h("h4", { class: "kw-h" }, "Prompt"), h("p", { class: "kw-dim" }, prompt.unrendered)] : []),
  ];
}

function summary({ calls, brief }: Prompt, proposer: string): string {
  if (!calls.length) {
    if (!brief) return "";
    const who = proposer === "experts" ? "a built-in expert" : proposer === "person" ? "you" : proposer || "its proposer";
    return `Written by ${who}: no model was asked, so it cost no tokens. Below is what the search knew when it asked.`;
  }
  const tokens = calls.reduce((sum, one) => sum + one.tokens_in + one.tokens_out, 0);
  const estimated = calls.some((one) => one.estimated);
  const priced = calls.filter((one) => one.money !== null);
  const money = priced.reduce((sum, one) => sum + (one.money ?? 0), 0);
  const price = priced.length === 0 ? "price not known" : `${format.money(money)}${priced.length < calls.length ? " and calls of unknown price" : ""}`;
  return `${format.plural(calls.length, "call")} to a model: ${estimated ? "≈ " : ""}${format.count(tokens)} tokens${estimated ? " (estimated)" : ""}, ${price}, ${format.duration(calls.reduce((sum, one) => sum + one.seconds, 0))}.`;
}

function note(texts: PromptMessageText[]): HTMLElement {
  const tokens = texts.reduce((sum, text) => sum + text.tokens, 0);
  return h("p", { class: "kw-dim" }, `≈ ${format.count(tokens)} tokens (estimated). It was not sent.`);
}

function call(one: ModelCall): HTMLElement[] {
  const about = one.estimated ? "≈ " : "";
  const rows: [string, string][] = [
    ["model", one.model],
    ["why this model", one.why || "it was the only one"],
    ["tokens", `${about}${format.count(one.tokens_in)} in${one.cached ? ` (${format.count(one.cached)} from the cache)` : ""}, ${about}${format.count(one.tokens_out)} out${one.estimated ? ": estimated, the endpoint did not say" : ""}`],
    ["price", one.money === null ? "not known: this model is not in the price table" : format.money(one.money)],
    ["latency", `${format.duration(one.seconds)}${one.first_seconds === null ? "" : `, first words after ${format.duration(one.first_seconds)}`}`],
    ["settings", format.parameters(Object.fromEntries(Object.entries(one.settings).filter(([, value]) => value !== null))) || "the endpoint's own"],
  ];
  if (one.finish) rows.push(["ended by", one.finish]);
  return [
    h("h4", { class: "kw-h" }, `Call ${one.number}: ${one.purpose}${one.attempt > 1 ? `, attempt ${one.attempt}` : ""}`, one.error !== "" && h("span", { class: "kw-verdict kw-bad" }, "failed")),
    facts(rows),
    ...(one.error ? [h("p", { class: "kw-callout kw-callout-bad" }, `This call failed: ${one.error}`)] : []),
    h("h5", { class: "kw-h5" }, "What was asked"),
    ...messages(one.messages),
    h("h5", { class: "kw-h5" }, "What came back"),
    one.reply ? text("reply", one.reply, `≈ ${format.count(Math.ceil(one.reply.length / 3.5))} tokens`, true) : h("p", { class: "kw-dim" }, "Nothing came back."),
  ];
}

function messages(texts: PromptMessageText[]): HTMLElement[] {
  return texts.map((one) => text(one.role, one.content, `≈ ${format.count(one.tokens)} tokens`, one.role !== "system"));
}

function text(role: string, content: string, size: string, open: boolean): HTMLElement {
  return h("details", { class: "kw-message", open },
    h("summary", {}, h("b", {}, role), h("span", { class: "kw-dim" }, ` ${size}`)),
    h("div", { class: "kw-message-body" }, h("pre", { class: "kw-pre", tabindex: 0, "aria-label": role }, content), copyButton(() => content, "Copy")),
  );
}

function chosen({ choices }: Prompt): HTMLElement[] {
  if (!choices) return [];
  return [
    h("h4", { class: "kw-h" }, `What the expert ${choices.expert} chose`),
    grid(["choice", "chosen", "among", "what it does"].map((label) => ({ label })), choices.rows.map((row) =>
      h("tr", {}, h("th", { scope: "row" }, row.name), h("td", { class: "kw-mono" }, h("b", {}, plain(row.chosen))), h("td", { class: "kw-mono" }, row.values.map(plain).join(", ") || "–"), h("td", {}, row.why)),
    ), "Structural choices"),
  ];
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function cited({ cited: found, brief }: Prompt): HTMLElement[] {
  const unused = brief ? brief.cards.filter((card) => !found.some((one) => one.id === card.id)) : [];
  if (!found.length && !unused.length) return [];
  return [
    h("h4", { class: "kw-h" }, "What it rests on"),
    ...found.map((one) => h("details", { class: "kw-message", open: one.kind === "card" },
      h("summary", {}, h("b", {}, one.id), h("span", { class: "kw-dim" }, { expert: " built-in expert", card: " experience card", other: " named by the proposer" }[one.kind])),
      h("p", { class: "kw-pre-line" }, one.text || "The workbench knows nothing more of it."))),
    ...(unused.length ? [h("p", { class: "kw-dim" }, `Cards that were shown and not cited: ${unused.map((card) => card.id).join(", ")}.`)] : []),
  ];
}

function asked(brief: AskedBrief, store: Store): HTMLElement[] {
  const rows: [string, HTMLElement | string][] = [
    ["kind", `${brief.kind}, for ${brief.candidate}`],
    ["island", brief.aim ? `${brief.island}: ${brief.aim}` : brief.island],
    ["do", brief.directive],
    ["advice", brief.advice.join("; ")],
    ["expert", format.parameters(brief.expert)],
    ["fitting experts", brief.experts.join(", ")],
    ["at", format.parameters(brief.parameters)],
    ["hints of yours", brief.hints.join("; ")],
    ["banned by you", brief.bans.join("; ")],
    ["budget left", left(brief)],
    ["seed", String(brief.seed)],
  ];
  const parents = brief.parents.map((parent) =>
    h("li", {},
      h("button", { type: "button", class: "kw-link", on: { click: () => store.choose(parent.id) } }, parent.id),
      ` ${VERDICTS[parent.verdict].word}${parent.time_us === null ? "" : `, ${format.time(parent.time_us)}${parent.modelled ? " modelled" : ""}`}${parent.diagnosis ? `: ${parent.diagnosis}` : ""}`));
  return [
    h("h4", { class: "kw-h" }, `The brief, ${brief.id}`),
    facts(rows.filter(([, value]) => value !== "")),
    ...(parents.length ? [h("h5", { class: "kw-h5" }, parents.length === 1 ? "Its parent" : "Its parents"), h("ul", { class: "kw-evidence" }, ...parents)] : []),
  ];
}

function left({ left: rest }: AskedBrief): string {
  const parts = [
    rest.evaluations !== null && `${format.count(rest.evaluations)} evaluations`,
    rest.seconds !== null && format.duration(rest.seconds),
    rest.tokens !== null && `${format.count(rest.tokens)} tokens`,
    rest.money !== null && format.money(rest.money),
  ];
  return parts.filter(Boolean).join(", ");
}

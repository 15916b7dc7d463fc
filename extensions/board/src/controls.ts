/** Step, Auto, Pause or Resume, Stop, Cancel, and the hint line. A button that means nothing now is disabled and says why. */

import type { Header, Verb } from "../../protocol";
import { button, enable, h, put, say } from "./dom";
import { WORDS } from "./glossary";
import { act } from "./requests";
import type { Say } from "./requests";
import { unheard } from "./states";
import type { Store } from "./store";

/** How long a plain answer stands, in ms; what went wrong stays. */
const SHOWN_FOR = 8000;
const IDLE = "Known once the run has been read.";

/** What keys can press as well as a pointer. */
export interface Controls {
  press(name: Verb): void;
  write(): void;
}

export function mountControls(parent: Element, store: Store, help: HTMLElement, signal: AbortSignal): Controls {
  const answer = h("span", { class: "kw-answer", role: "status", "aria-live": "polite" });
  let fading: ReturnType<typeof setTimeout>;
  const report: Say = (text, level) => {
    say(answer, text);
    answer.dataset["level"] = level;
    clearTimeout(fading);
    if (level === "info") fading = setTimeout(() => say(answer, ""), SHOWN_FOR);
  };
  const verb = (name: Verb, label: string, extra = ""): HTMLButtonElement =>
    button(label, IDLE, () => act(store, name, "", report), { class: `kw-button ${extra}`, "data-verb": name, disabled: true });
  const step = verb("step", "Step", "kw-primary");
  const auto = verb("auto", "Auto");
  const pause = verb("pause", "Pause");
  const resume = verb("resume", "Resume");
  const stop = verb("stop", "Stop");
  const cancel = verb("cancel", "Cancel");
  resume.hidden = true;

  const input = h("input", {
    class: "kw-input",
    type: "text",
    "aria-label": "A hint for the search, or an idea to ban",
    placeholder: "Tell the search something, e.g. keep the whole row in registers",
  });
  const island = h("select", { class: "kw-select kw-hint-island", "aria-label": "Which island the hint is for", title: WORDS.island, hidden: true });
  const send = (name: "hint" | "ban"): void => {
    const text = input.value.trim();
    if (!text) {
      report(`Write the ${name === "hint" ? "hint" : "idea to ban"} first.`, "error");
      input.focus();
      return;
    }
    act(store, name, text, report, name === "hint" ? island.value : "");
    input.value = "";
  };
  const hint = button("Hint", WORDS.hint, () => send("hint"));
  const ban = button("Ban", WORDS.ban, () => send("ban"));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") send("hint");
  });
  const said = h("div", { class: "kw-said", hidden: true });
  const why = h("p", { class: "kw-why-not", hidden: true });

  parent.append(
    h("div", { class: "kw-verbs", role: "group", "aria-label": "Run" }, step, auto, pause, resume, stop, cancel),
    h("div", { class: "kw-hints", role: "group", "aria-label": "Guide the search" }, input, island, hint, ban, help),
    answer,
    said,
    why,
  );

  store.on("run", signal, () => {
    const header = store.header;
    if (!header) return;
    const can = possible(header);
    for (const [element, name] of [[step, "step"], [auto, "auto"], [pause, "pause"], [resume, "resume"], [stop, "stop"], [cancel, "cancel"]] as const) {
      enable(element, can[name] === "", can[name] || WORDS[name]);
    }
    const gone = unheard(header);
    pause.hidden = can.resume === "";
    resume.hidden = can.resume !== "";
    for (const element of [hint, ban]) enable(element, gone === "", gone || (element === hint ? WORDS.hint : WORDS.ban));
    input.disabled = island.disabled = gone !== "";
    const names = header.islands.map((one) => one.name);
    if (island.options.length !== names.length + 1) {
      const chosen = island.value;
      put(island, h("option", { value: "" }, "on all islands"), ...names.map((one) => h("option", { value: one }, `on ${one}`)));
      island.value = names.includes(chosen) ? chosen : "";
      island.hidden = names.length < 2;
    }
    put(said, ...header.hints.map((text) => note("hint", text)), ...header.bans.map((text) => note("banned", text)));
    said.hidden = said.childElementCount === 0;
    say(why, gone);
    why.hidden = gone === "";
  });

  const buttons: Partial<Record<Verb, HTMLButtonElement>> = { step, auto, pause, resume, stop, cancel };
  return {
    press(name) {
      const element = buttons[name];
      if (!element) return;
      if (element.disabled) report(element.title, "info");
      else element.click();
    },
    write: () => input.focus(),
  };
}

function note(kind: string, text: string): HTMLElement {
  return h("span", { class: "kw-chip", title: text }, h("b", {}, kind), ` ${text}`);
}

/** For each verb: empty where it can be done, else why it can't. */
function possible(header: Header): Record<"step" | "auto" | "pause" | "resume" | "stop" | "cancel", string> {
  const { state } = header;
  const gone = unheard(header);
  if (gone) return { step: gone, auto: gone, pause: gone, resume: "", stop: gone, cancel: gone };
  const begin =
    state === "preparing" ? "The judge is still preparing." : state === "running" ? "It is running." : state === "stopping" ? "It is stopping." : "";
  return {
    step: begin,
    auto: begin,
    pause: state === "running" ? "" : "Nothing is running.",
    resume: state === "paused" ? "" : "It is not paused.",
    stop: state === "stopping" ? "It is stopping already." : "",
    cancel: "",
  };
}

/**
 * Code as plain text: what stands until the editors have come, and for good where they don't. It can be read, selected, scrolled, compared
 * and edited; what is missing is colour and comfort.
 */

import { h } from "./dom";
import { hunks, steps } from "./unified";

/** Where somebody was in a text, so as to be there again in what takes its place. */
export interface Place {
  /** The first line in sight, from 0, with the part of it that is not. */
  line: number;
  /** How far it is scrolled to the right, in px. */
  left: number;
  focused: boolean;
  /** From and to which character is selected, in a text that is edited. */
  selected?: [number, number];
}

export interface Plain {
  element: HTMLElement;
  place(): Place;
  /** Somebody holds it: a part is selected, or a character is being composed. Taken away now, that would be lost. */
  held(): boolean;
}

/** Space above the first line, in px, as the style sheet has it. */
const TOP = 4;
/** Equal lines that are shown around a change. */
const AROUND = 3;
const MINUS = "−";

export function plainCode(text: string, label: string): Plain {
  return sheet(count(text), h("pre", { class: "kw-plain-text" }, text), label);
}

export function plainDiff(old: string, now: string, label: string): Plain {
  const [before, after] = [old.split("\n"), now.split("\n")];
  const shown = hunks(steps(before, after), AROUND);
  const body = h("pre", { class: "kw-plain-text" });
  const numbers: string[] = [];
  for (const step of shown) {
    if (typeof step === "number") {
      numbers.push("");
      body.append(h("span", { class: "kw-plain-skipped" }, `⋯ ${step} equal ${step === 1 ? "line" : "lines"}`));
      continue;
    }
    const removed = step.change === "removed";
    numbers.push(String((removed ? step.old : step.now) + 1));
    const mark = removed ? MINUS : step.change === "added" ? "+" : " ";
    body.append(h("span", { class: `kw-plain-${step.change}` }, `${mark} ${removed ? before[step.old] : after[step.now]}`));
  }
  const made = sheet(numbers.join("\n"), body, label);
  return {
    ...made,
    place() {
      const place = made.place();
      const at = shown.slice(Math.floor(place.line)).find((step) => typeof step !== "number");
      return { ...place, line: place.line > 0 && typeof at === "object" ? at.now : 0 };
    },
  };
}

export function plainEdit(text: string, label: string, changed: (text: string) => void): Plain & { text(): string } {
  const area = h("textarea", { class: "kw-plain-edit", "aria-label": label, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off" });
  area.value = text;
  let composing = false;
  area.addEventListener("input", () => changed(area.value));
  area.addEventListener("compositionstart", () => (composing = true));
  area.addEventListener("compositionend", () => (composing = false));
  return {
    element: area,
    text: () => area.value,
    place: () => ({
      line: lines(area, area.value),
      left: area.scrollLeft,
      focused: document.activeElement === area,
      selected: [area.selectionStart, area.selectionEnd],
    }),
    held: () => composing,
  };
}

/** As `showLinked` of the editors: tells which line is meant, and lights up the lines that it is told to. */
export function plainLinked(text: string, label: string, meant: (line: number, kept: boolean) => void): Plain & { light(ranges: readonly [number, number][], reveal: boolean): void; at(): number } {
  const body = h("pre", { class: "kw-plain-text" }, text);
  const lit = h("div", { class: "kw-plain-lit", "aria-hidden": "true" });
  const made = sheet(count(text), h("div", { class: "kw-plain-body" }, lit, body), `${label}. The arrow keys walk through its lines.`);
  const { element } = made;
  const last = text.split("\n").length;
  let at = 0;
  let hovered = 0;
  const height = (): number => Math.max(1, (body.offsetHeight - 2 * TOP) / last);
  const under = (event: MouseEvent): number => {
    const from = body.getBoundingClientRect().top + TOP;
    return Math.min(last, Math.max(1, Math.floor((event.clientY - from) / height()) + 1));
  };
  const reach = (line: number, middle: boolean): void => {
    const [top, room] = [TOP + (line - 1) * height(), element.clientHeight];
    if (top >= element.scrollTop && top + height() <= element.scrollTop + room) return;
    element.scrollTop = middle ? top - room / 2 : top < element.scrollTop ? top - height() : top + 2 * height() - room;
  };
  const keep = (line: number): void => {
    at = Math.min(last, Math.max(1, line));
    meant(at, true);
    reach(at, false);
  };
  element.addEventListener("mousemove", (event) => {
    const line = under(event);
    if (line !== hovered) meant((hovered = line), false);
  });
  element.addEventListener("mouseleave", () => {
    hovered = 0;
    meant(0, false);
  });
  element.addEventListener("click", (event) => keep(under(event)));
  element.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    keep(at + step);
    event.preventDefault();
  });
  return {
    ...made,
    at: () => at,
    light(ranges, reveal) {
      lit.replaceChildren(...ranges.map(([from, until]) =>
        h("div", { class: "kw-linked-line kw-linked-first", style: `top:${1.5 * (from - 1)}em;height:${1.5 * (Math.min(until, last) - from + 1)}em` })));
      if (reveal && ranges[0]) reach(Math.min(ranges[0][0], last), true);
    },
  };
}

function sheet(numbers: string, body: HTMLElement, label: string): Plain {
  const element = h("div", { class: "kw-plain", role: "group", tabindex: 0, "aria-label": label },
    h("pre", { class: "kw-plain-numbers", "aria-hidden": "true" }, numbers), body);
  return {
    element,
    place: () => ({ line: lines(element, numbers), left: element.scrollLeft, focused: document.activeElement === element }),
    held() {
      const picked = document.getSelection();
      return picked !== null && !picked.isCollapsed && picked.containsNode(element, true);
    },
  };
}

/** How many lines of a text are scrolled out of sight. */
function lines(scrolled: HTMLElement, text: string): number {
  const all = text.split("\n").length;
  return Math.max(0, (scrolled.scrollTop * all) / Math.max(1, scrolled.scrollHeight - 2 * TOP));
}

function count(text: string): string {
  return text.split("\n").map((_, at) => at + 1).join("\n");
}

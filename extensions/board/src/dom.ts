/** Small helpers to make elements. All text goes in as text nodes: nothing that a candidate wrote is ever parsed as HTML. */

export type Child = Node | string | null | false;

interface Props {
  class?: string;
  on?: Record<string, (event: Event) => void>;
  [attribute: string]: unknown;
}

const LATEST = 400;
/** What idle work may take where nobody says when it is in the way, in ms. */
const A_SLICE = 8;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Replaces what `parent` holds. */
export function put(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== false && child !== ""));
}

/** Sets text only where it differs, so that a live region does not speak twice. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** In place of an empty panel: what is missing and how to get it. */
export function missing(...children: Child[]): HTMLElement {
  return h("p", { class: "kw-empty" }, ...children);
}

export function button(label: string, title: string, act: (event: Event) => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", class: "kw-button", title, on: { click: act }, ...props }, label);
}

/** Enables or disables a button; a disabled one says why in its tooltip. */
export function enable(element: HTMLButtonElement, can: boolean, title: string): void {
  element.disabled = !can;
  element.title = title;
}

/** Calls `act` once per frame however often it is asked. */
export function perFrame(signal: AbortSignal, act: () => void): () => void {
  let asked = 0;
  signal.addEventListener("abort", () => cancelAnimationFrame(asked));
  return () => {
    if (asked || signal.aborted) return;
    asked = requestAnimationFrame(() => {
      asked = 0;
      act();
    });
  };
}

/** Calls `act` when there is nothing better to do, with the ms that it may take: once however often it is asked, and in `LATEST` ms anyway. */
export function whenIdle(signal: AbortSignal, act: (left: () => number) => void): () => void {
  let asked = false;
  return () => {
    if (asked || signal.aborted) return;
    asked = true;
    const run = (deadline?: IdleDeadline): void => {
      asked = false;
      const until = performance.now() + A_SLICE;
      if (!signal.aborted) act(() => (deadline && !deadline.didTimeout ? deadline.timeRemaining() : until - performance.now()));
    };
    if (typeof requestIdleCallback === "function") requestIdleCallback(run, { timeout: LATEST });
    else setTimeout(run, LATEST / 4);
  };
}

/** Calls `act` when the element's size changes, with its width and height inside, until the signal ends it. They are 0 while it is hidden. */
export function onResize(element: Element, signal: AbortSignal, act: (width: number, height: number) => void): void {
  const observer = new ResizeObserver((entries) => {
    const { width, height } = entries.at(-1)!.contentRect;
    act(width, height);
  });
  observer.observe(element);
  signal.addEventListener("abort", () => observer.disconnect());
}

function fill<E extends Element>(element: E, props: Props, children: Child[]): E {
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [type, listener] of Object.entries(value as NonNullable<Props["on"]>)) element.addEventListener(type, listener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  put(element, ...children);
  return element;
}

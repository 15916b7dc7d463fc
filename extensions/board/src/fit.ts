/**
 * How wide the board is, as classes that its style sheet knows.
 *
 * Container queries would say the same without a script, but their container is styled anew whenever anything in it is laid out, and
 * then painted: while a table of thousands is scrolled that is half of each frame.
 */

interface Widths {
  /** `NAME-under-N` is set up to a width of N px, `NAME-over-N` from it on. */
  name: string;
  under?: number[];
  over?: number[];
}

/** Keeps the classes of an element in step with its width. */
export function fit(element: Element, { name, under = [], over = [] }: Widths, signal: AbortSignal): void {
  const observer = new ResizeObserver(([entry]) => {
    const width = entry?.contentRect.width ?? 0;
    if (width === 0) return; // hidden, as in a tab behind another: it will be as wide as it was
    for (const step of under) element.classList.toggle(`${name}-under-${step}`, width <= step);
    for (const step of over) element.classList.toggle(`${name}-over-${step}`, width >= step);
  });
  observer.observe(element);
  signal.addEventListener("abort", () => observer.disconnect());
}

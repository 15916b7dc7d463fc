/**
 * Verdicts and islands as images, for the table's rows.
 *
 * A drawing in the document is a viewport of its own, with its own clip and its own place among the layers: two in each row are most of
 * what a browser does to scroll a table. An image is painted like text. It can't inherit a colour, so the names of these images are
 * custom properties of the board's root, set anew when the theme changes.
 */

import { onTheme } from "./colours";
import { onResize } from "./dom";
import { KINDS, colour, mark } from "./marks";
import { ORDER, VERDICTS } from "./verdicts";
import type { AnyVerdict } from "./verdicts";

const SVG = 'xmlns="http://www.w3.org/2000/svg"';
const LINE = 'fill="none" stroke-linecap="round" stroke-linejoin="round" stroke-width="1.7"';
const TONES = { good: "var(--kw-good)", fair: "var(--kw-fair)", bad: "var(--kw-bad)", none: "var(--kw-dim)" };

export function verdictImage(verdict: AnyVerdict): string {
  return `var(--kw-image-${verdict.replaceAll("_", "-")})`;
}

export function islandImage(island: number): string {
  return `var(--kw-image-island-${island % KINDS})`;
}

/** Sets the images' properties, from when the root stands in the document until the signal ends it: before that it has no colours. */
export function mountImages(root: HTMLElement, signal: AbortSignal): void {
  let drawn = "";
  const draw = (): void => {
    const seen = colours(root, [...Object.values(TONES), ...Array.from({ length: KINDS }, (_, island) => colour(island))]);
    if (!seen || seen.join() === drawn) return;
    drawn = seen.join();
    const tones = Object.keys(TONES);
    for (const verdict of ORDER) {
      const { tone, path } = VERDICTS[verdict];
      set(root, verdictImage(verdict), `<svg ${SVG} viewBox="0 0 12 12"><path d="${path}" ${LINE} stroke="${seen[tones.indexOf(tone)]}"/></svg>`);
    }
    for (let island = 0; island < KINDS; island += 1) {
      set(root, islandImage(island), `<svg ${SVG} viewBox="-6 -6 12 12"><path d="${mark(island, 0, 0, 4)}" fill="${seen[tones.length + island]}"/></svg>`);
    }
  };
  onTheme(signal, draw);
  onResize(root, signal, () => {
    if (!drawn) draw();
  });
}

function set(root: HTMLElement, image: string, svg: string): void {
  root.style.setProperty(image.slice(4, -1), `url("data:image/svg+xml,${encodeURIComponent(svg)}")`);
}

/** How these colours look in an element; null while it stands nowhere. */
function colours(element: HTMLElement, names: readonly string[]): string[] | null {
  if (!element.isConnected) return null;
  const probe = document.createElement("span");
  element.append(probe);
  const seen = names.map((name) => {
    probe.style.color = name;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return seen;
}

/** Islands are told apart by shape and by colour: the shapes, as paths around the origin, and the names of the colours. */

import { s } from "./dom";

const SHAPES: ((r: number) => string)[] = [
  (r) => `m${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (r) => box(r * 0.88),
  (r) => `m0 ${-r * 1.15}l${r * 1.1} ${r * 2}h${-r * 2.2}z`,
  (r) => `m0 ${-r * 1.25}l${r * 1.25} ${r * 1.25}l${-r * 1.25} ${r * 1.25}l${-r * 1.25} ${-r * 1.25}z`,
  (r) => `m0 ${r * 1.15}l${r * 1.1} ${-r * 2}h${-r * 2.2}z`,
  (r) => cross(r * 1.1, r * 0.4),
  (r) => `m${-r * 0.55} ${-r}h${r * 1.1}l${r * 0.55} ${r}l${-r * 0.55} ${r}h${-r * 1.1}l${-r * 0.55} ${-r}z`,
  (r) => `m${-r * 1.3} ${-r * 0.55}h${r * 2.6}v${r * 1.1}h${-r * 2.6}z`,
];

/** How many islands can be told apart; further ones begin anew. */
export const KINDS = SHAPES.length;

/** The path of an island's mark with its centre at (x, y). */
export function mark(island: number, x: number, y: number, r: number): string {
  return `M${x.toFixed(1)} ${y.toFixed(1)}${(SHAPES[island % KINDS] ?? SHAPES[0]!)(r)}`;
}

export function colour(island: number): string {
  return `var(--kw-island-${island % KINDS})`;
}

export function glyph(island: number): SVGSVGElement {
  return s(
    "svg",
    { class: "kw-glyph", viewBox: "-6 -6 12 12", width: 10, height: 10, "aria-hidden": "true" },
    s("path", { d: mark(island, 0, 0, 4), fill: colour(island) }),
  );
}

function box(r: number): string {
  return `m${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`;
}

function cross(r: number, w: number): string {
  const arm = r - w;
  return `m${-w} ${-r}h${2 * w}v${arm}h${arm}v${2 * w}h${-arm}v${arm}h${-2 * w}v${-arm}h${-arm}v${-2 * w}h${arm}z`;
}

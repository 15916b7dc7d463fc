/**
 * The marks of the chart, made once.
 *
 * Points come one by one to thousands that stand already. They are drawn in chunks that lie side by side, in a layer of its own: what
 * has been drawn is neither parsed nor painted again when a point is added, nor while the table beside it is scrolled. Thousands at once
 * are drawn when nothing else is to be done: who opens a run reads its head and its table first.
 */

import type { Point } from "../../protocol";
import { s } from "./dom";

const CHUNK = 256;
/** Fewer points than these are drawn at once. */
const SOON = 2 * CHUNK;

export class Plot {
  readonly element = s("svg", { class: "kw-plot", "aria-hidden": "true" });
  private key = "";
  private whole = 0;
  private drawn = 0;
  private tail: SVGElement | null = null;

  /**
   * Shows the points. `key` names everything but them that the drawing depends on; `draw` makes the marks of a few neighbours. Where many
   * are to be drawn, `left` says how many ms there are for it; without it they wait.
   *
   * Returns whether some are left for later.
   */
  update(points: readonly Point[], key: string, draw: (some: readonly Point[]) => SVGElement[], left?: () => number): boolean {
    if (key !== this.key || points.length < this.drawn) {
      this.key = key;
      this.element.replaceChildren();
      this.tail = null;
      this.whole = this.drawn = 0;
    }
    if (points.length === this.drawn) return false;
    if (!left && points.length - this.drawn > SOON) return true;
    this.tail?.remove();
    this.tail = null;
    for (let one = 0; points.length - this.whole >= CHUNK; one += 1) {
      if (left && one && left() < 2) {
        this.drawn = this.whole;
        return true;
      }
      this.element.append(s("g", {}, ...draw(points.slice(this.whole, this.whole + CHUNK))));
      this.whole += CHUNK;
    }
    if (points.length > this.whole) {
      this.tail = s("g", {}, ...draw(points.slice(this.whole)));
      this.element.append(this.tail);
    }
    this.drawn = points.length;
    return false;
  }
}

/** The end of the axis: a bit beyond the last point where there are many, so that it need not move for each of them. */
export function reach(count: number): number {
  if (count <= 100) return Math.max(10, count);
  const step = 10 ** Math.floor(Math.log10(count)) / 20;
  return Math.ceil(count / step) * step;
}

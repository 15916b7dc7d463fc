/** A tensor as a grid of cells: how often each is touched, by colour; and which cells one program touches, as a frame around them. */

import type { TensorMap } from "../../protocol";
import { css, mix, palette, sharp } from "./colours";
import { h } from "./dom";
import * as format from "./format";

const WIDEST = 300;
const TALLEST = 220;

/** Run-length pairs as one value a cell. */
export function unroll(runs: [number, number][], size: number): Float64Array {
  const out = new Float64Array(size);
  let at = 0;
  for (const [value, count] of runs) {
    out.fill(value, at, at + count);
    at += count;
  }
  return out;
}

export class Heat {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "kw-heat" });
  private readonly tip = h("span", { class: "kw-heat-tip kw-dim" }, "\u00a0");
  private readonly values: Float64Array;
  private readonly most: number;
  private readonly size: [number, number];
  private shown: readonly [number, number][] = [];

  constructor(
    private readonly tensor: TensorMap,
    private readonly verb: "read" | "written",
  ) {
    const { rows, columns } = tensor;
    this.values = unroll(verb === "read" ? tensor.reads : tensor.writes, rows * columns);
    this.most = this.values.reduce((most, value) => Math.max(most, value), 0);
    const side = Math.max(1, Math.min(Math.floor(WIDEST / columns), Math.floor(TALLEST / rows), 24));
    this.size = [Math.max(columns * side, 40), Math.max(rows * side, rows === 1 ? 22 : 12)];
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", this.describe());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.textContent = "\u00a0"));
    this.element = h("div", { class: "kw-heat-box" }, h("div", { class: "kw-heat-head" }, h("b", {}, verb), h("span", { class: "kw-dim" }, this.scale())), this.canvas, this.tip);
  }

  /** The cells that one program touches, as half-open ranges of cell numbers. */
  program(ranges: readonly [number, number][]): void {
    this.shown = ranges;
    this.draw();
  }

  draw(): void {
    const { rows, columns } = this.tensor;
    const [width, height] = this.size;
    const context = sharp(this.canvas, width, height);
    const colours = palette(this.element);
    const [w, t] = [width / columns, height / rows];
    const mine = new Uint8Array(rows * columns);
    for (const [from, until] of this.shown) mine.fill(1, from, until);
    const empty = mix(colours.ground, colours.text, 0.05);
    const faint = mix(colours.ground, colours.brand, 0.22);
    for (let cell = 0; cell < mine.length; cell += 1) {
      const value = this.values[cell]!;
      const [x, y] = [(cell % columns) * w, Math.floor(cell / columns) * t];
      context.fillStyle = css(value ? mix(faint, colours.brand, this.most > 0 ? (0.85 * value) / this.most : 0) : empty);
      context.fillRect(x, y, w + 0.5, t + 0.5);
    }
    // What the program touches is darkened and framed, so that it is seen without telling colours apart.
    context.strokeStyle = css(colours.text);
    context.fillStyle = css(colours.text, 0.35);
    context.lineWidth = 1.5;
    for (let row = 0; row < rows; row += 1) {
      for (let from = 0; from < columns; from += 1) {
        if (!mine[row * columns + from]) continue;
        let until = from;
        while (until < columns && mine[row * columns + until]) until += 1;
        context.fillRect(from * w, row * t, (until - from) * w, t);
        context.beginPath();
        const above = row > 0 && mine[(row - 1) * columns + from];
        const below = row + 1 < rows && mine[(row + 1) * columns + from];
        if (!above) line(context, from * w, row * t + 0.75, until * w, row * t + 0.75);
        if (!below) line(context, from * w, (row + 1) * t - 0.75, until * w, (row + 1) * t - 0.75);
        line(context, from * w + 0.75, row * t, from * w + 0.75, (row + 1) * t);
        line(context, until * w - 0.75, row * t, until * w - 0.75, (row + 1) * t);
        context.stroke();
        from = until;
      }
    }
    this.canvas.setAttribute("aria-label", this.describe());
  }

  private describe(): string {
    const cells = this.shown.reduce((sum, [from, until]) => sum + until - from, 0);
    const program = cells ? ` The chosen program touches ${cells} of ${this.tensor.rows * this.tensor.columns} cells.` : " The chosen program touches none of it.";
    return `${this.tensor.name}: how often each element is ${this.verb}. ${this.scale()}.${program}`;
  }

  private scale(): string {
    const most = this.verb === "read" ? this.tensor.most_reads : this.tensor.most_writes;
    if (!this.most) return "never";
    const low = this.values.reduce((least, value) => Math.min(least, value), Infinity);
    return low === this.most ? `${format.times(low)} everywhere` : `${format.times(low)} to ${format.times(this.most)} a cell, ${most}× at most`;
  }

  private point(event: PointerEvent): void {
    const { rows, columns, row_elements: tall, column_elements: wide } = this.tensor;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
    const row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
    const value = this.values[row * columns + column]!;
    const place = (at: number, size: number): string => (size > 1 ? `${at * size} – ${(at + 1) * size - 1}` : String(at));
    this.tip.textContent = `${rows > 1 ? `row ${place(row, tall)}, ` : ""}column ${place(column, wide)}: ${this.verb} ${format.times(value)}`;
  }
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
}

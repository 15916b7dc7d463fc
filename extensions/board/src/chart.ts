/**
 * Progress: one mark per evaluation, the best so far as a step line, the floor and the baselines as labelled lines.
 *
 * Marks of one island that are neighbours are one path, and of those that would cover each other one is drawn, so that ten thousand
 * evaluations are a few hundred elements; the nearest mark to the pointer is looked up in the numbers, not in the document.
 */

import type { Point } from "../../protocol";
import { h, onResize, perFrame, put, s, say, whenIdle } from "./dom";
import * as format from "./format";
import { WORDS } from "./glossary";
import { colour, glyph, mark } from "./marks";
import { Plot, reach } from "./plot";
import { spread, vertical } from "./scales";
import type { Scale } from "./scales";
import type { Store } from "./store";
import { placed } from "./tally";
import { VERDICTS, passes } from "./verdicts";

const HEIGHT = 228;
const MARGIN = { top: 24, right: 104, bottom: 22, left: 58 };
const STRIP = 11;
/** More points than these are drawn small, and those left out whose mark another covers: px between two marks that both show. */
const MANY = 1500;
const COVERS = 1.5;

interface Frame {
  width: number;
  last: number;
  y: Scale;
  x(n: number): number;
}

export class Chart {
  private readonly svg = s("svg", { class: "kw-chart", tabindex: 0, role: "application", height: HEIGHT });
  private readonly title = h("span", { class: "kw-panel-title" });
  private readonly legend = h("div", { class: "kw-legend" });
  private readonly tip = h("div", { class: "kw-tip", hidden: true });
  private readonly live = h("span", { class: "kw-sr", "aria-live": "polite" });
  private readonly plot = new Plot();
  /** What must be seen above the marks: the best so far, and rings. */
  private readonly front = s("svg", { class: "kw-front", "aria-hidden": "true" });
  private readonly cursorMark = s("path", { class: "kw-cursor" });
  private readonly later: () => void;
  private width = 0;
  private frame: Frame | null = null;
  private cursor = -1;
  private legended = "";

  constructor(
    parent: Element,
    private readonly store: Store,
    signal: AbortSignal,
  ) {
    parent.append(
      h("div", { class: "kw-panel-head" }, this.title),
      h("div", { class: "kw-chart-box" }, this.svg, this.plot.element, this.front, this.tip),
      this.legend,
      this.live,
    );
    const draw = perFrame(signal, () => this.draw());
    this.later = whenIdle(signal, (left) => this.drawMarks(left));
    store.on("run", signal, draw);
    store.on("selected", signal, draw);
    onResize(this.svg.parentElement!, signal, (width) => {
      if (width === 0 || width === this.width) return; // 0: hidden, so it will be as wide as it was
      this.width = width;
      draw();
    });
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.move(-1));
    this.svg.addEventListener("click", () => this.choose());
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => this.move(-1));
  }

  focus(): void {
    this.svg.focus();
  }

  private draw(): void {
    const { header, points } = this.store;
    if (!header || this.width === 0) return;
    const width = Math.max(260, this.width);
    const lines = this.lines();
    const known = points.length > 0 || lines.length > 0;
    const { low, high } = this.store.tally;
    const y = vertical([low, high, ...lines.map((line) => line.value)], MARGIN.top + 8, HEIGHT - MARGIN.bottom - 6);
    const last = reach(points.at(-1)?.n ?? 0);
    const span = width - MARGIN.left - MARGIN.right;
    const x = (n: number): number => MARGIN.left + 8 + ((n - 1) / (last - 1)) * (span - 16);
    this.frame = { width, last, x, y };
    const measured = header.modelled ? `, modelled for ${header.target}` : header.device ? `, measured on ${header.device.replace(/^gpu: /, "")}` : "";
    say(this.title, `Time per evaluation${measured}${known && y.log ? ", log scale" : ""}`);
    this.svg.setAttribute("aria-label", this.describe());
    for (const layer of [this.svg, this.plot.element, this.front]) {
      layer.setAttribute("width", String(width));
      layer.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    }
    put(this.front, ...this.steps(), this.chosen(), this.cursorMark);
    this.drawMarks();
    put(
      this.svg,
      ...(known ? this.axes(last) : []),
      ...this.baselines(lines),
      ...this.strip(),
      points.length === 0 && s("text", { class: "kw-empty-chart", x: (width - MARGIN.right + MARGIN.left) / 2, y: HEIGHT / 2 }, this.nothing()),
    );
    this.drawLegend();
  }

  /** Marks that are not drawn yet; thousands only where there is time `left` for them. */
  private drawMarks(left?: () => number): void {
    const { header, points, replaced } = this.store;
    if (!header || !this.frame) return;
    const { width, last, y } = this.frame;
    const radius = points.length > MANY ? 2 : points.length > 300 ? 2.8 : 3.8;
    this.plot.element.classList.toggle("kw-dense", points.length > MANY);
    const key = `${width} ${last} ${y.key} ${radius} ${header.islands.length} ${replaced}`;
    if (this.plot.update(points, key, (some) => [...this.failures(some), ...this.marks(some, radius)], left)) this.later();
  }

  private nothing(): string {
    const state = this.store.header?.state;
    if (state === "preparing") return "The judge is getting ready.";
    if (state === "ended") return "The run ended before anything was judged.";
    return "Nothing judged yet. Press Step to judge a variant.";
  }

  private lines(): { name: string; value: number; kind: string }[] {
    const header = this.store.header;
    if (!header) return [];
    const found = [];
    if (header.floor_us) found.push({ name: "floor", value: header.floor_us, kind: "floor" });
    if (header.compile?.timing) found.push({ name: "compile", value: header.compile.timing.median_us, kind: "base" });
    if (header.eager?.timing) found.push({ name: "eager", value: header.eager.timing.median_us, kind: "base" });
    return found;
  }

  private axes(last: number): SVGElement[] {
    const { width, x, y } = this.frame!;
    const right = width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    const out: SVGElement[] = [];
    for (const tick of y.ticks) {
      const at = y.at(tick);
      out.push(
        s("line", { class: "kw-grid", x1: MARGIN.left, x2: right, y1: at, y2: at }),
        s("text", { class: "kw-tick", x: MARGIN.left - 8, y: at, "text-anchor": "end", "dominant-baseline": "middle" }, y.log ? format.tick(tick) : format.tick(tick, y.ticks.at(-1))),
      );
    }
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((size) => last / size <= width / 90) ?? 20000;
    for (let n = step; n <= last; n += step) {
      out.push(s("text", { class: "kw-tick", x: x(n), y: bottom + 14, "text-anchor": "middle" }, format.count(n)));
    }
    out.push(
      s("line", { class: "kw-axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }),
      s("text", { class: "kw-tick", x: right + 8, y: bottom + 14 }, "evaluations"),
    );
    return out;
  }

  private baselines(lines: { name: string; value: number; kind: string }[]): SVGElement[] {
    const { width, y } = this.frame!;
    const right = width - MARGIN.right;
    const labels = [...lines];
    const best = this.store.header?.best;
    if (best) labels.push({ name: "best", value: best.time_us, kind: "best" });
    const places = spread(labels.map((line) => y.at(line.value)), 13, MARGIN.top, HEIGHT - MARGIN.bottom);
    return labels.flatMap((line, index) => {
      const at = y.at(line.value);
      const text = s(
        "text",
        { class: `kw-line-label kw-line-${line.kind}`, x: right + 8, y: places[index], "dominant-baseline": "middle" },
        `${line.name} ${format.time(line.value)}`,
      );
      if (line.kind === "best") return [text];
      return [s("line", { class: `kw-line kw-line-${line.kind}`, x1: MARGIN.left, x2: right, y1: at, y2: at }), text];
    });
  }

  private steps(): SVGElement[] {
    const { x, y, width } = this.frame!;
    let path = "";
    for (const point of this.store.tally.improvements) {
      const [px, py] = [x(point.n).toFixed(1), y.at(point.time_us!).toFixed(1)];
      path += path ? `H${px}V${py}` : `M${px} ${py}`;
    }
    return path ? [s("path", { class: "kw-best-line", d: `${path}H${width - MARGIN.right}` })] : [];
  }

  /** Where those stand that have no place on the time axis. */
  private strip(): SVGElement[] {
    if (!this.store.tally.unplaced) return [];
    return [
      s("line", { class: "kw-strip", x1: MARGIN.left, x2: this.frame!.width - MARGIN.right, y1: STRIP + 8, y2: STRIP + 8 }),
      s("text", { class: "kw-tick", x: MARGIN.left - 8, y: STRIP, "text-anchor": "end", "dominant-baseline": "middle" }, "failed"),
    ];
  }

  private failures(points: readonly Point[]): SVGElement[] {
    const { x } = this.frame!;
    let bad = "";
    let none = "";
    for (const point of points) {
      if (placed(point) !== null) continue;
      const px = x(point.n).toFixed(1);
      if (VERDICTS[point.verdict].tone === "bad") bad += `M${px} ${STRIP - 4}v9`;
      else none += `M${px} ${STRIP - 1}v3`;
    }
    return [...(bad ? [s("path", { class: "kw-failed", d: bad })] : []), ...(none ? [s("path", { class: "kw-unjudged", d: none })] : [])];
  }

  private marks(points: readonly Point[], radius: number): SVGElement[] {
    const { x, y } = this.frame!;
    const filled = new Map<number, string>();
    const hollow = new Map<number, string>();
    const dense = this.store.points.length > MANY;
    const covered = new Set<string>();
    for (const point of points) {
      const time = placed(point);
      if (time === null) continue;
      const island = this.store.island(this.islandOf(point));
      const passed = passes(point.verdict);
      const into = passed ? filled : hollow;
      const [px, py] = [x(point.n), y.at(time)];
      if (dense) {
        const spot = `${island} ${passed} ${Math.round(px / COVERS)} ${Math.round(py / COVERS)}`;
        if (covered.has(spot)) continue;
        covered.add(spot);
      }
      into.set(island, (into.get(island) ?? "") + mark(island, px, py, radius));
    }
    return [
      ...[...hollow].map(([island, d]) => s("path", { class: "kw-mark kw-hollow", d, style: `stroke:${colour(island)}` })),
      ...[...filled].map(([island, d]) => s("path", { class: "kw-mark", d, fill: colour(island) })),
    ];
  }

  private chosen(): SVGElement {
    let d = "";
    for (const at of this.store.tally.of(this.store.selected)) d += ring(...this.place(this.store.points[at]!), 7.5);
    return s("path", { class: "kw-chosen", d });
  }

  private islandOf(point: Point): string {
    return this.store.row(point.candidate)?.island ?? "";
  }

  private place(point: Point): [number, number] {
    const { x, y } = this.frame!;
    const time = placed(point);
    return [x(point.n), time === null ? STRIP : y.at(time)];
  }

  private drawLegend(): void {
    const islands = this.store.header?.islands ?? [];
    const { islands: used, hollow } = this.store.tally;
    const state = JSON.stringify([islands, [...used], hollow > 0]);
    if (state === this.legended) return;
    this.legended = state;
    put(
      this.legend,
      ...islands.map((island, index) => used.has(island.name) && h("span", { title: island.aim || WORDS.island }, glyph(index), ` ${island.name}`)),
      hollow > 0 && h("span", { class: "kw-legend-note" }, "hollow: lower precision or time not confirmed"),
    );
  }

  private describe(): string {
    const { header, points } = this.store;
    const { right } = this.store.tally;
    const best = header?.best ? ` Best: ${header.best.id}, ${format.time(header.best.time_us)}.` : "";
    return `Progress chart: ${points.length} evaluations, ${right} right.${best} Use the arrow keys to walk through them and Enter to select.`;
  }

  private point(event: PointerEvent): void {
    if (!this.frame) return;
    const box = this.svg.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let found = -1;
    let least = 24 ** 2;
    this.store.points.forEach((point, index) => {
      const [x, y] = this.place(point);
      const distance = (x - px) ** 2 + (y - py) ** 2;
      if (distance < least) [found, least] = [index, distance];
    });
    this.move(found);
  }

  private key(event: KeyboardEvent): void {
    const count = this.store.points.length;
    if (!count) return;
    const from = this.cursor >= 0 ? this.cursor : this.store.points.findIndex((point) => point.candidate === this.store.selected);
    const to: Record<string, number> = {
      ArrowRight: Math.min(count - 1, from + 1),
      ArrowLeft: Math.max(0, from - 1),
      Home: 0,
      End: count - 1,
    };
    if (event.key in to) this.move(to[event.key]!, true);
    else if (event.key === "Enter" || event.key === " ") this.choose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private choose(): void {
    const point = this.store.points[this.cursor];
    if (point) this.store.choose(point.candidate);
  }

  private move(index: number, speak = false): void {
    this.cursor = index;
    const point = this.store.points[index];
    this.tip.hidden = !point;
    this.svg.classList.toggle("kw-on-mark", point !== undefined);
    if (!point || !this.frame) {
      this.cursorMark.setAttribute("d", "");
      return;
    }
    const [x, y] = this.place(point);
    this.cursorMark.setAttribute("d", ring(x, y, 6));
    const row = this.store.row(point.candidate);
    const when = point.time_us === null ? "" : ` ${format.time(point.time_us)}${point.modelled ? " modelled" : ""}`;
    put(
      this.tip,
      h("b", {}, point.evaluation),
      ` ${VERDICTS[point.verdict].word}${when}`,
      h("br"),
      `${this.islandOf(point)}${row?.plan ? `: ${row.plan.slice(0, 140)}` : ""}`,
    );
    if (speak) say(this.live, this.tip.textContent ?? "");
    const left = x > this.frame.width / 2;
    this.tip.style.left = left ? "" : `${x + 12}px`;
    this.tip.style.right = left ? `${this.frame.width - x + 12}px` : "";
    this.tip.style.top = `${Math.min(y, HEIGHT - 70)}px`;
  }
}

function ring(x: number, y: number, r: number): string {
  return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
}

/**
 * A timeline on a canvas: tracks of slices, zoomed and panned by wheel, drag and keys.
 *
 * Slices of one track are drawn in order and skipped where they are narrower than a pixel. What a person needs to know of a slice stands
 * in `words`, which is spoken too: the canvas alone would say nothing to a screen reader.
 */

import type { Slice, Timeline } from "../../protocol";
import { css, mix, onTheme, palette, sharp } from "./colours";
import { button, h, onResize, perFrame, say } from "./dom";
import * as format from "./format";

const ROW = 22;
const PART = 7;
const HEAD = 20;
const GAP = 8;
/** Room for the names of tracks, in px. */
const LEFT = 8;

/** The stretch of time that is in sight, shared by timelines that may be compared. */
export class Window {
  from = 0;
  until: number;
  private readonly listeners = new Set<() => void>();

  constructor(readonly whole: number) {
    this.until = whole;
  }

  on(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** Zooms around a time: `factor` below 1 shows less of it, larger. */
  zoom(at: number, factor: number): void {
    const span = Math.min(this.whole, Math.max(this.whole / 5000, (this.until - this.from) * factor));
    const share = (at - this.from) / (this.until - this.from);
    this.set(at - share * span, span);
  }

  pan(by: number): void {
    this.set(this.from + by, this.until - this.from);
  }

  all(): void {
    this.set(0, this.whole);
  }

  /** Moves as little as needed to bring a slice into sight. */
  reveal(slice: Slice): void {
    const span = this.until - this.from;
    if (slice.start_us < this.from) this.set(slice.start_us, span);
    else if (slice.start_us + slice.us > this.until) this.set(Math.min(slice.start_us, slice.start_us + slice.us - span), span);
  }

  private set(from: number, span: number): void {
    this.from = Math.min(Math.max(0, from), Math.max(0, this.whole - span));
    this.until = this.from + span;
    for (const listener of this.listeners) listener();
  }
}

interface Place {
  slice: Slice;
  x: number;
  y: number;
  width: number;
}

export class TimelineView {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "kw-timeline", tabindex: 0, role: "application" });
  private readonly words = h("p", { class: "kw-dim kw-timeline-words", "aria-live": "polite" });
  private readonly tracks: string[];
  private readonly rows: Map<string, Slice[]>;
  private readonly parts: boolean;
  private places: Place[] = [];
  private chosen: Slice | null = null;
  private readonly idle: string;

  constructor(
    timeline: Timeline,
    private readonly window: Window,
    signal: AbortSignal,
  ) {
    this.rows = new Map();
    for (const slice of timeline.slices) {
      const row = this.rows.get(slice.track);
      if (row) row.push(slice);
      else this.rows.set(slice.track, [slice]);
    }
    this.tracks = [...this.rows.keys()];
    this.parts = timeline.slices.some((slice) => Object.keys(slice.parts).length > 0);
    this.idle = `${format.plural(timeline.slices.length, "slice")} on ${format.plural(this.tracks.length, "track")}${timeline.left_out ? `, ${format.count(timeline.left_out)} left out` : ""}. Arrows walk, + and − zoom, 0 shows all.`;
    this.canvas.setAttribute("aria-label", `Timeline of the ${timeline.name}, ${format.time(timeline.total_us)}. ${this.idle}`);
    say(this.words, this.idle);
    this.element = h("div", { class: "kw-timeline-box" }, this.canvas, this.words);
    const draw = perFrame(signal, () => this.draw());
    window.on(draw);
    onResize(this.element, signal, draw);
    onTheme(signal, draw);
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.tell(this.chosen));
    this.canvas.addEventListener("keydown", (event) => this.key(event, draw));
    this.redraw = draw;
    draw();
  }

  private readonly redraw: () => void;

  /** Buttons for those who have neither wheel nor keys at hand. */
  static buttons(window: Window): HTMLElement {
    const middle = (): number => (window.from + window.until) / 2;
    return h("span", { class: "kw-verbs", role: "group", "aria-label": "Zoom" },
      button("−", "Zoom out", () => window.zoom(middle(), 2), { "aria-label": "Zoom out" }),
      button("+", "Zoom in", () => window.zoom(middle(), 0.5), { "aria-label": "Zoom in" }),
      button("Whole", "Shows all of it.", () => window.all()));
  }

  private get rowHeight(): number {
    return ROW + (this.parts ? PART + 2 : 0) + GAP;
  }

  private draw(): void {
    const width = Math.max(200, this.element.clientWidth);
    const height = HEAD + this.tracks.length * (this.rowHeight + 14) + 2;
    const context = sharp(this.canvas, width, height);
    const colours = palette(this.element);
    const { from, until } = this.window;
    const x = (us: number): number => LEFT + ((us - from) / (until - from)) * (width - LEFT * 2);
    context.clearRect(0, 0, width, height);
    const family = getComputedStyle(this.element).fontFamily;
    const font = (weight: number, size: number): string => `${weight} ${size}px ${family}`;
    context.font = font(400, 11);
    context.textBaseline = "middle";
    for (const tick of ticks(from, until, Math.max(2, Math.floor(width / 90)))) {
      context.fillStyle = css(colours.line);
      context.fillRect(x(tick), HEAD - 4, 1, height - HEAD + 4);
      context.fillStyle = css(colours.dim);
      context.textAlign = "center";
      context.fillText(format.tick(tick, until), Math.min(width - 24, Math.max(14, x(tick))), 8);
    }
    context.textAlign = "left";
    this.places = [];
    this.tracks.forEach((track, index) => {
      const top = HEAD + index * (this.rowHeight + 14) + 12;
      context.font = font(400, 11);
      context.fillStyle = css(colours.dim);
      context.fillText(track, LEFT, top - 6);
      let drawnTo = -1;
      for (const slice of this.rows.get(track) ?? []) {
        const [a, b] = [x(slice.start_us), x(slice.start_us + slice.us)];
        if (b < 0 || a > width) continue;
        const wide = Math.max(1, b - a);
        if (b - a < 1 && a - drawnTo < 1) continue;
        drawnTo = b;
        this.places.push({ slice, x: a, y: top, width: wide });
        context.fillStyle = css(slice.own ? mix(colours.brand, colours.ground, 0.25) : mix(colours.ground, colours.text, 0.2));
        context.fillRect(a, top, Math.max(1, wide - (wide > 4 ? 1 : 0)), ROW);
        // Own kernels bear a stripe too: colour alone would not tell them.
        if (slice.own && wide > 4) {
          context.fillStyle = css(colours.text);
          context.fillRect(a, top, 2, ROW);
        }
        if (wide > 34) label(context, slice.name, a + 6, top + ROW / 2, wide - 10, font(slice.own ? 600 : 400, 11.5), css(colours.text));
        if (this.parts) this.drawParts(context, slice, a, top + ROW + 2, wide, colours, font(400, 10));
        if (slice === this.chosen) {
          context.strokeStyle = css(colours.text);
          context.lineWidth = 2;
          context.strokeRect(a + 1, top + 1, Math.max(2, wide - 2), ROW - 2);
        }
      }
    });
  }

  /** What a modelled time consists of, under its slice: they overlap, so each is drawn from the slice's start. */
  private drawParts(context: CanvasRenderingContext2D, slice: Slice, x: number, y: number, width: number, colours: ReturnType<typeof palette>, font: string): void {
    const parts = Object.entries(slice.parts).filter(([, us]) => us > 0);
    const most = parts.reduce((top, [, us]) => Math.max(top, us), 0);
    if (!most || width < 8) return;
    context.font = font;
    const total = parts.reduce((sum, [, us]) => sum + us, 0);
    let at = x;
    parts.forEach(([, us], index) => {
      const wide = (us / total) * (width - 1);
      context.fillStyle = css(mix(colours.brand, colours.ground, us === most ? 0.15 : 0.45 + 0.12 * index));
      context.fillRect(at, y, Math.max(0, wide - 1), PART);
      at += wide;
    });
  }

  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the panel scrolls
    event.preventDefault();
    const span = this.window.until - this.window.from;
    if (event.shiftKey) this.window.pan((Math.sign(event.deltaY || event.deltaX) * span) / 8);
    else this.window.zoom(this.timeAt(event.clientX), event.deltaY > 0 ? 1.25 : 0.8);
  }

  private drag(event: PointerEvent): void {
    const hit = this.hit(event);
    if (hit) this.choose(hit);
    let last = event.clientX;
    const scale = (this.window.until - this.window.from) / Math.max(1, this.element.clientWidth - LEFT * 2);
    const move = (now: PointerEvent): void => {
      this.window.pan((last - now.clientX) * scale);
      last = now.clientX;
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", () => this.canvas.removeEventListener("pointermove", move), { once: true });
  }

  private hover(event: PointerEvent): void {
    const hit = this.hit(event);
    this.canvas.classList.toggle("kw-on-mark", hit !== null);
    this.tell(hit ?? this.chosen);
  }

  private hit(event: PointerEvent): Slice | null {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return this.places.find((place) => y >= place.y && y < place.y + this.rowHeight && x >= place.x - 1 && x < place.x + Math.max(3, place.width))?.slice ?? null;
  }

  private timeAt(clientX: number): number {
    const box = this.canvas.getBoundingClientRect();
    return this.window.from + ((clientX - box.left - LEFT) / (box.width - LEFT * 2)) * (this.window.until - this.window.from);
  }

  private key(event: KeyboardEvent, draw: () => void): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const track = this.rows.get(this.chosen?.track ?? this.tracks[0] ?? "") ?? [];
    const at = this.chosen ? track.indexOf(this.chosen) : -1;
    const middle = this.chosen ? this.chosen.start_us + this.chosen.us / 2 : (this.window.from + this.window.until) / 2;
    const span = this.window.until - this.window.from;
    const other = (step: number): void => {
      const name = this.tracks[this.tracks.indexOf(this.chosen?.track ?? "") + step];
      const row = name ? this.rows.get(name) : undefined;
      if (row) this.choose(row.reduce((best, slice) => (Math.abs(slice.start_us - middle) < Math.abs(best.start_us - middle) ? slice : best)));
    };
    const act: Record<string, () => void> = {
      ArrowRight: () => (event.shiftKey ? this.window.pan(span / 8) : this.choose(track[Math.min(track.length - 1, at + 1)])),
      ArrowLeft: () => (event.shiftKey ? this.window.pan(-span / 8) : this.choose(track[Math.max(0, at - 1)])),
      ArrowDown: () => other(1),
      ArrowUp: () => other(-1),
      Home: () => this.choose(track[0]),
      End: () => this.choose(track.at(-1)),
      "+": () => this.window.zoom(middle, 0.5),
      "=": () => this.window.zoom(middle, 0.5),
      "-": () => this.window.zoom(middle, 2),
      "0": () => this.window.all(),
    };
    const found = act[event.key];
    if (!found) return;
    found();
    draw();
    event.preventDefault();
    event.stopPropagation();
  }

  private choose(slice: Slice | undefined): void {
    if (!slice) return;
    this.chosen = slice;
    this.window.reveal(slice);
    this.tell(slice);
    this.redraw();
  }

  private tell(slice: Slice | null): void {
    if (!slice) {
      say(this.words, this.idle);
      return;
    }
    const parts = [...Object.entries(slice.parts).filter(([, us]) => us > 0).map(([name, us]) => `${name} ${format.time(us)}`),
      ...Object.entries(slice.figures).map(([name, value]) => `${name} ${/byte/i.test(name) ? format.bytes(value) : format.count(value)}`)];
    say(this.words, `${slice.name}${slice.own ? " (its own)" : ""}: ${format.time(slice.us)}, from ${format.time(slice.start_us)}${parts.length ? `; ${parts.join(", ")}` : ""}`);
  }
}

function label(context: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, font: string, colour: string): void {
  context.font = font;
  context.fillStyle = colour;
  let shown = text;
  if (context.measureText(text).width > width) {
    let [low, high] = [0, text.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    shown = low ? `${text.slice(0, low)}…` : "";
  }
  context.fillText(shown, x, y);
}

function ticks(from: number, until: number, most: number): number[] {
  const rough = (until - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((lead) => lead * power >= rough) ?? 10) * power;
  const out: number[] = [];
  for (let tick = Math.ceil(from / step) * step; tick <= until; tick += step) out.push(Number(tick.toPrecision(8)));
  return out;
}

/**
 * The roofline: how many operations a second, against how many operations a byte. Nothing lies above the roof; the distance of a mark
 * from it is what can still be won.
 */

import type { Evaluation, Header, Roof } from "../../../protocol";
import { h, s } from "../dom";
import * as format from "../format";
import { spread } from "../scales";

export interface Mark {
  name: string;
  kind: "own" | "parent" | "base" | "floor";
  us: number;
  /** Bytes from device memory; null where nobody knows them, and the least is taken. */
  bytes: number | null;
}

const WIDTH = 520;
const HEIGHT = 276;
const LEFT = 76;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 36;

export function marksOf(evaluation: Evaluation, parent: Evaluation | undefined, header: Header | null): Mark[] {
  const timing = evaluation.timing;
  if (!timing || !header) return [];
  const marks: Mark[] = [];
  if (header.floor_us) marks.push({ name: "floor", kind: "floor", us: header.floor_us, bytes: null });
  for (const [name, base] of [["torch.compile", header.compile], ["eager", header.eager]] as const) {
    if (base?.timing && base.timing.modelled === timing.modelled) marks.push({ name, kind: "base", us: base.timing.median_us, bytes: null });
  }
  if (parent?.timing) marks.push({ name: parent.candidate, kind: "parent", us: parent.timing.median_us, bytes: parent.modelled?.dram_bytes ?? null });
  marks.push({ name: evaluation.candidate, kind: "own", us: timing.median_us, bytes: evaluation.modelled?.dram_bytes ?? null });
  return marks;
}

/** The picture, and the sentence that reads it. Null where the op does no arithmetic, so that it has no place on the picture. */
export function roofline(marks: Mark[], roof: Roof | null, target: string): HTMLElement | null {
  if (!roof || roof.flops <= 0 || roof.bytes <= 0 || !marks.length) return null;
  const peak = roof.products ?? roof.plain;
  const points = marks.map((mark) => ({ ...mark, x: roof.flops / (mark.bytes ?? roof.bytes), y: roof.flops / (mark.us * 1e-6) }));
  const ridge = peak / roof.bandwidth;
  const xs = [...points.map((point) => point.x), ridge, roof.plain / roof.bandwidth];
  const [x0, x1] = [Math.min(...xs) / 3, Math.max(...xs) * 3];
  const ys = [...points.map((point) => point.y), peak, Math.min(peak, x0 * roof.bandwidth * 2)];
  const [y0, y1] = [Math.min(...ys) / 2, Math.max(...ys) * 1.8];
  const x = (value: number): number => LEFT + (Math.log(value / x0) / Math.log(x1 / x0)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - (Math.log(value / y0) / Math.log(y1 / y0)) * (HEIGHT - TOP - BOTTOM);
  const slope = (bandwidth: number, top: number): string => {
    const from = Math.max(x0, y0 / bandwidth);
    return `M${x(from)} ${y(from * bandwidth)}L${x(top / bandwidth)} ${y(top)}`;
  };
  const plain = roof.products !== null && roof.plain < peak;
  const places = spread(points.map((point) => y(point.y)), 14, TOP + 6, HEIGHT - BOTTOM - 6);
  // The slope's name stands where the marks are not.
  const early = (points.at(-1)?.x ?? 0) > ridge / 5;
  const start = Math.max(x0 * 1.12, (y0 * 1.12) / roof.bandwidth);
  const clip = `M${x(x0)} ${y(peak)}`;
  const picture = s(
    "svg",
    { class: "kw-roof", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words(points, roof, target) },
    ...decades(x0, x1).flatMap((tick) => [
      s("line", { class: "kw-grid", x1: x(tick), x2: x(tick), y1: TOP, y2: HEIGHT - BOTTOM }),
      s("text", { class: "kw-tick", x: x(tick), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, short(tick)),
    ]),
    ...decades(y0, y1).flatMap((tick) => [
      s("line", { class: "kw-grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
      s("text", { class: "kw-tick", x: LEFT - 6, y: y(tick), "text-anchor": "end", "dominant-baseline": "middle" }, rate(tick)),
    ]),
    s("path", { class: "kw-roof-ground", d: `${clip}M${x(Math.max(x0, y0 / roof.bandwidth))} ${y(Math.max(y0, x0 * roof.bandwidth))}L${x(ridge)} ${y(peak)}H${WIDTH - RIGHT}V${TOP}H${LEFT}V${y(Math.max(y0, x0 * roof.bandwidth))}Z` }),
    s("path", { class: "kw-roof-line", d: `${slope(roof.bandwidth, peak)}H${WIDTH - RIGHT}` }),
    s("path", { class: "kw-roof-faint", d: slope(roof.l2_bandwidth, Math.min(peak, y1)) }),
    plain && s("path", { class: "kw-roof-faint", d: `M${x(roof.plain / roof.bandwidth)} ${y(roof.plain)}H${WIDTH - RIGHT}` }),
    plain && s("text", { class: "kw-tick", x: WIDTH - RIGHT - 4, y: y(roof.plain) - 5, "text-anchor": "end" }, `without tensor cores ${rate(roof.plain)}`),
    s("text", { class: "kw-tick kw-roof-name", x: WIDTH - RIGHT - 4, y: y(peak) - 5, "text-anchor": "end" }, `${roof.products ? `${roof.products_dtype} products` : "arithmetic"} ${rate(peak)}`),
    ...points.flatMap((point, index) => {
      const [px, py] = [x(point.x), y(point.y)];
      const before = px > WIDTH * 0.72;
      return [
        s("line", { class: "kw-roof-gap", x1: px, x2: px, y1: py, y2: y(Math.min(peak, point.x * roof.bandwidth)) }),
        s("path", { class: `kw-roof-mark kw-roof-${point.kind}`, d: SHAPE[point.kind](px, py) }),
        s("text", { class: `kw-roof-label kw-roof-label-${point.kind}`, x: before ? px - 10 : px + 10, y: places[index], "text-anchor": before ? "end" : "start", "dominant-baseline": "middle" }, `${point.name} ${format.time(point.us)}`),
      ];
    }),
    s("text", { class: "kw-tick kw-roof-name", transform: along(x, y, roof.bandwidth, early ? start : ridge * 0.82), dy: 15, "text-anchor": early ? "start" : "end" }, `memory ${format.rate(roof.bandwidth, "B")}`),
    s("text", { class: "kw-tick", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, "operations per byte from device memory"),
  );
  const guessed = points.some((point) => point.bytes === null && point.kind !== "floor");
  return h("figure", { class: "kw-figure-box" }, picture, h("figcaption", { class: "kw-dim" }, words(points, roof, target), guessed && " Where the bytes moved are not known, a mark stands at the least possible."));
}

/** Places a text along the slope of a bandwidth, from `from` operations a byte on. */
function along(x: (value: number) => number, y: (value: number) => number, bandwidth: number, from: number): string {
  const [px, py] = [x(from), y(from * bandwidth)];
  const angle = (Math.atan2(y(from * 2 * bandwidth) - py, x(from * 2) - px) * 180) / Math.PI;
  return `translate(${px} ${py}) rotate(${angle})`;
}

const SHAPE: Record<Mark["kind"], (x: number, y: number) => string> = {
  own: (x, y) => `M${x - 6} ${y}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0`,
  parent: (x, y) => `M${x - 5} ${y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0`,
  base: (x, y) => `M${x - 4.5} ${y - 4.5}h9v9h-9z`,
  floor: (x, y) => `M${x - 7} ${y}h14M${x} ${y - 7}v14`,
};

function words(points: (Mark & { x: number; y: number })[], roof: Roof, target: string): string {
  const own = points.find((point) => point.kind === "own");
  if (!own) return "";
  const peak = roof.products ?? roof.plain;
  const limit = Math.min(peak, own.x * roof.bandwidth);
  const side = own.x * roof.bandwidth < peak ? "under the slope, where memory is the limit" : "under the flat part, where arithmetic is the limit";
  return `${own.name} does ${rate(own.y)} at ${format.figure(own.x)} operations a byte: ${side}. It reaches ${format.percent(own.y / limit)} of the roof there (${roof.gpu}, ${target}). The dashed slope is the L2 cache.`;
}

function decades(low: number, high: number): number[] {
  const out: number[] = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.floor(Math.log10(high)); power += 1) out.push(10 ** power);
  return out;
}

function short(value: number): string {
  return value >= 1000 ? `${value / 1000}k` : String(Number(value.toPrecision(2)));
}

/** FLOP/s with its unit, short. */
function rate(value: number): string {
  const [size, unit] = value >= 1e12 ? [1e12, "T"] : value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : [1e3, "k"];
  return `${Number((value / size).toPrecision(3))} ${unit}FLOP/s`;
}

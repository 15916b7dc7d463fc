/** From times to pixels: linear, or logarithmic where the times spread over more than a factor of four. */

export interface Scale {
  log: boolean;
  /** Equal for scales that put every value at the same place. */
  key: string;
  at(value: number): number;
  ticks: number[];
}

/** A vertical scale that holds every positive value given, drawn between `top` and `bottom` px. */
export function vertical(values: number[], top: number, bottom: number): Scale {
  let low = Infinity;
  let high = 0;
  for (const value of values) {
    if (!(value > 0) || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(high > 0)) [low, high] = [1, 10];
  if (high / low < 1.02) [low, high] = [low * 0.9, high * 1.1];
  const log = high / low > 4;
  // The ends are rounded outward, so that they need not move, and every mark with them, for each time that is a little lower.
  if (log) {
    const pad = (high / low) ** 0.05;
    const step = Math.log(high / low) / 40;
    const grid = 2 ** Math.floor(Math.log2(step));
    const [from, to] = [Math.floor(Math.log(low / pad) / grid) * grid, Math.ceil(Math.log(high * pad) / grid) * grid];
    return {
      log,
      key: `log ${from} ${to}`,
      at: (value) => bottom - ((Math.log(value) - from) / (to - from)) * (bottom - top),
      ticks: logTicks(Math.exp(from), Math.exp(to)),
    };
  }
  const pad = (high - low) * 0.06;
  const grid = 2 ** Math.floor(Math.log2((high - low) / 30));
  const [from, to] = [Math.max(0, Math.floor((low - pad) / grid) * grid), Math.ceil((high + pad) / grid) * grid];
  return { log, key: `${from} ${to}`, at: (value) => bottom - ((value - from) / (to - from)) * (bottom - top), ticks: linearTicks(from, to) };
}

function logTicks(low: number, high: number): number[] {
  const ticks: number[] = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade += 1) {
    for (const lead of [1, 2, 5]) ticks.push(lead * 10 ** decade);
  }
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return inside.length > 6 ? inside.filter((tick) => /^1e/.test(tick.toExponential(0))) : inside;
}

function linearTicks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((lead) => lead * power >= rough) ?? 10) * power;
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(Number(tick.toPrecision(6)));
  return ticks;
}

/** Moves labels apart so that none overlaps: returns new positions in the order given. */
export function spread(positions: number[], gap: number, top: number, bottom: number): number[] {
  const order = positions.map((_, index) => index).sort((a, b) => positions[a]! - positions[b]!);
  const placed = [...positions];
  let least = top;
  for (const index of order) {
    placed[index] = Math.max(placed[index]!, least);
    least = placed[index]! + gap;
  }
  let most = bottom;
  for (const index of order.reverse()) {
    placed[index] = Math.min(placed[index]!, most);
    most = placed[index]! - gap;
  }
  return placed;
}

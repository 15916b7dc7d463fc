/** Figures for people: short, with their unit, in three significant digits. */

import type { Float, Json, Tensor } from "../../protocol";

const DTYPES: Record<string, string> = {
  bfloat16: "bf16",
  float16: "fp16",
  float32: "fp32",
  float64: "fp64",
  float8_e4m3fn: "fp8 e4m3",
  float8_e5m2: "fp8 e5m2",
};

/** 3 significant digits, no exponent between 0.001 and 10 million. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.001 || size >= 1e7) return value.toExponential(2);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(digits, 5));
}

/** A time given in µs, in the unit that reads best. */
export function time(us: number | null | undefined): string {
  if (us === null || us === undefined) return "–";
  if (us >= 1e6) return `${figure(us / 1e6)} s`;
  if (us >= 1e4) return `${figure(us / 1e3)} ms`;
  return `${figure(us)} µs`;
}

/** A round time, such as one on an axis: no zeros behind the point, and in the unit that reads best for the `largest` on the axis. */
export function tick(us: number, largest = us): string {
  if (us === 0) return "0";
  const text = largest < 2000 ? `${figure(us)} µs` : largest < 2e6 ? `${figure(us / 1e3)} ms` : `${figure(us / 1e6)} s`;
  return text.replace(/\.0+ /, " ").replace(/(\.\d*[1-9])0+ /, "$1 ");
}

export function interval(low: number, high: number): string {
  return `${figure(low)} – ${time(high)}`;
}

export function ratio(value: number): string {
  return `${figure(value)}×`;
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value >= 99.95 || value < 0.05 ? Math.round(value) : value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? String(Math.round(value)) : figure(value)} ${units[unit]}`;
}

export function flops(count: number): string {
  const units = ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? String(Math.round(value)) : figure(value)} ${units[unit]}`;
}

/** A count with thin spaces between thousands. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${seconds < 10 && seconds > 0 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return two(Math.floor(seconds / 60), "min", Math.floor(seconds % 60), "s");
  return two(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
}

function two(large: number, unit: string, small: number, part: string): string {
  return small ? `${large} ${unit} ${small} ${part}` : `${large} ${unit}`;
}

export function dtype(name: string): string {
  return DTYPES[name] ?? name;
}

/** Such as `4096×8192 bf16`. */
export function tensor(spec: Tensor): string {
  if (spec.dtype === "python") return "scalar";
  return `${spec.shape.length ? spec.shape.join("×") : "scalar"} ${dtype(spec.dtype)}`;
}

/** A float as `records.encode` sends it, NaN and infinities included. */
export function float(value: Float | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") return value.$float;
  return Number.isInteger(value) ? String(value) : value.toPrecision(6).replace(/\.?0+(e|$)/, "$1");
}

export function number(value: Float | null | undefined): number {
  if (value === null || value === undefined) return NaN;
  return typeof value === "number" ? value : value.$float === "inf" ? Infinity : value.$float === "-inf" ? -Infinity : NaN;
}

/** Such as `BLOCK=128, warps=4`; empty for no parameters. */
export function parameters(values: Record<string, Json>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

export function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

/** USD: cents where there are whole ones, else as many digits as show something. */
export function money(usd: number): string {
  return `$${usd > 0 && usd < 0.01 ? usd.toPrecision(2) : usd.toFixed(2)}`;
}

/** A multiple without idle zeros, such as `2×` and `1.25×`. */
export function times(value: number): string {
  return `${figure(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}×`;
}

/** Such as `1 launch` and `2 launches`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A rate per second, such as `4.30 TB/s` and `740 TFLOP/s`. */
export function rate(perSecond: number, unit: "B" | "FLOP"): string {
  return `${unit === "B" ? bytes(perSecond) : flops(perSecond)}/s`;
}

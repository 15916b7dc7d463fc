/**
 * SHA-256 of a text, as a hex digest (FIPS 180-4).
 *
 * The browser's own `crypto.subtle` exists on secure origins only, and notebooks are often served over plain HTTP on a local
 * network. The digest compares a cell with what was captured; it keeps no secret.
 */

const K = constants();

export function sha256(text: string): string {
  const data = new TextEncoder().encode(text);
  const blocks = new Uint8Array((((data.length + 8) >> 6) + 1) << 6);
  blocks.set(data);
  blocks[data.length] = 0x80;
  const view = new DataView(blocks.buffer);
  view.setUint32(blocks.length - 8, Math.floor((data.length * 8) / 2 ** 32));
  view.setUint32(blocks.length - 4, (data.length * 8) >>> 0);
  const state = Uint32Array.from([
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  ]);
  const w = new Uint32Array(64);
  for (let offset = 0; offset < blocks.length; offset += 64) round(state, w, view, offset);
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

function round(state: Uint32Array, w: Uint32Array, view: DataView, offset: number): void {
  for (let i = 0; i < 16; i += 1) w[i] = view.getUint32(offset + 4 * i);
  for (let i = 16; i < 64; i += 1) {
    const a = w[i - 15]!;
    const b = w[i - 2]!;
    w[i] = w[i - 16]! + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[i - 7]! + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i += 1) {
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) >>> 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) >>> 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) >>> 0, c, b, a, (one + two) >>> 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = state[i]! + word));
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
function constants(): Uint32Array {
  const words: number[] = [];
  for (let n = 2; words.length < 64; n += 1) {
    let prime = true;
    for (let d = 2; d * d <= n; d += 1) if (n % d === 0) prime = false;
    if (prime) words.push(fraction(n));
  }
  return Uint32Array.from(words);
}

/** Doubles lack the bits for a cube root to 32 places behind the point, so the root is found in integers. */
function fraction(n: number): number {
  const scaled = BigInt(n) << 96n;
  let low = 0n;
  let high = 1n << 36n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle * middle * middle <= scaled) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

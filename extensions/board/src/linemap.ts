/** Which lines of a compiler's stage come from which line of the source. */

import type { Stage } from "../../protocol";

/** From each line of a stage to its line of the candidate, and back. Lines count from 1; 0 is none. */
export class LineMap {
  private readonly back = new Map<number, [number, number][]>();
  private readonly pairs: [number, number][];

  constructor(pairs: [number, number][], last: number) {
    this.pairs = pairs;
    pairs.forEach(([from, line], index) => {
      if (!line) return;
      const until = (pairs[index + 1]?.[0] ?? last + 1) - 1;
      const ranges = this.back.get(line);
      if (ranges) ranges.push([from, until]);
      else this.back.set(line, [[from, until]]);
    });
  }

  static of(stage: Stage): LineMap {
    return new LineMap(stage.lines, stage.text.split("\n").length);
  }

  get known(): boolean {
    return this.back.size > 0;
  }

  sourceOf(line: number): number {
    let [low, high] = [0, this.pairs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.pairs[middle]![0] <= line) low = middle + 1;
      else high = middle;
    }
    return low ? this.pairs[low - 1]![1] : 0;
  }

  /** Ranges of the stage's lines, both ends included. */
  linesOf(source: number): [number, number][] {
    return this.back.get(source) ?? [];
  }
}

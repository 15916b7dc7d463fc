/**
 * What views need to know of all rows and points, kept up as these come.
 *
 * A variant is judged beside ten thousand that stand already. Whatever is drawn then must cost what one variant costs, so nothing is
 * counted anew: a row that changes is taken out of the counts as it was and put in as it is.
 */

import type { Point, Row } from "../../protocol";
import { passes } from "./verdicts";
import type { AnyVerdict } from "./verdicts";

export class Tally {
  /** Rows by verdict. */
  readonly verdicts = new Map<AnyVerdict, number>();
  /** Points that were the fastest right ones when they came. */
  readonly improvements: Point[] = [];
  /** Islands that have a point. */
  readonly islands = new Set<string>();
  /** Points with a right verdict. */
  right = 0;
  /** Points without a place on the time axis. */
  unplaced = 0;
  /** Points with a place on it that don't pass. */
  hollow = 0;
  /** The range of the times on the axis in µs; `high` is 0 while there is none. */
  low = Infinity;
  high = 0;
  private readonly places = new Map<string, number[]>();

  row(before: Row | undefined, now: Row): void {
    if (before) this.verdicts.set(before.verdict, this.verdict(before.verdict) - 1);
    this.verdicts.set(now.verdict, this.verdict(now.verdict) + 1);
  }

  verdict(name: AnyVerdict): number {
    return this.verdicts.get(name) ?? 0;
  }

  /** Takes in the point that stands at place `at`. */
  point(point: Point, at: number, island: string): void {
    const own = this.places.get(point.candidate);
    if (own) own.push(at);
    else this.places.set(point.candidate, [at]);
    this.islands.add(island);
    const right = passes(point.verdict);
    if (right) this.right += 1;
    const time = placed(point);
    if (time === null) {
      this.unplaced += 1;
      return;
    }
    if (!right) this.hollow += 1;
    if (!(time > 0)) return;
    if (time < this.low) this.low = time;
    if (time > this.high) this.high = time;
    if (right && time < (this.improvements.at(-1)?.time_us ?? Infinity)) this.improvements.push(point);
  }

  /** Where the points of a variant stand. */
  of(candidate: string): readonly number[] {
    return this.places.get(candidate) ?? [];
  }

  /** Forgets the points. */
  clearPoints(): void {
    this.improvements.length = 0;
    this.islands.clear();
    this.places.clear();
    this.right = this.unplaced = this.hollow = this.high = 0;
    this.low = Infinity;
  }
}

/** A point's time where it has a place on the axis: right variants, and those with lower precision or doubtful clocks; else null. */
export function placed(point: Point): number | null {
  return point.verdict === "right" || point.verdict === "lower_precision" || point.verdict === "time_not_confirmed" ? point.time_us : null;
}

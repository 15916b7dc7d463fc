/** The smallest change by whole lines from one text to another. */

export interface Edit {
  start: number;
  end: number;
  text: string;
}

/**
 * Replaces the lines between the common head and the common tail.
 *
 * In a shared notebook a change of the whole cell can tear another person's line apart; a change of the lines that differ merges.
 */
export function edit(old: string, now: string): Edit {
  const [before, after] = [lines(old), lines(now)];
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const start = length(before.slice(0, head));
  return { start, end: old.length - length(before.slice(before.length - tail)), text: after.slice(head, after.length - tail).join("") };
}

/** Lines with their ends. */
function lines(text: string): string[] {
  return text.split(/(?<=\n)/);
}

function length(of: string[]): number {
  return of.reduce((sum, line) => sum + line.length, 0);
}

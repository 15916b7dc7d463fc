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
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  start = start === most && old.length === now.length ? start : old.lastIndexOf("\n", start - 1) + 1;
  let tail = 0;
  while (tail < most - start && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const cut = old.indexOf("\n", old.length - tail);
  tail = tail === 0 || cut < 0 ? 0 : old.length - cut;
  return { start, end: old.length - tail, text: now.slice(start, now.length - tail) };
}

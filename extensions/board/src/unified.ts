/** Two texts as one, line by line: what was taken out, what was put in, and the lines around. */

export type Change = "equal" | "removed" | "added";

export interface Step {
  change: Change;
  /** Places in the old and in the new text, from 0. */
  old: number;
  now: number;
}

/** Changes beyond this many lines are not looked for one by one: the work grows with their square. */
const MOST = 600;

/** The shortest way from one list of lines to another; what is too far apart is taken out and put in as a whole. */
export function steps(old: readonly string[], now: readonly string[]): Step[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const out: Step[] = [];
  for (let at = 0; at < head; at += 1) out.push({ change: "equal", old: at, now: at });
  const [n, m] = [old.length - head - tail, now.length - head - tail];
  out.push(...(middle(old, now, head, n, m) ?? whole(head, n, m)));
  for (let at = 0; at < tail; at += 1) out.push({ change: "equal", old: head + n + at, now: head + m + at });
  return out;
}

function whole(head: number, n: number, m: number): Step[] {
  return [
    ...Array.from({ length: n }, (_, at): Step => ({ change: "removed", old: head + at, now: head })),
    ...Array.from({ length: m }, (_, at): Step => ({ change: "added", old: head + n, now: head + at })),
  ];
}

/** Myers' greedy search: for each number of changes, how far each diagonal can be followed. Null where it takes too many. */
function middle(old: readonly string[], now: readonly string[], head: number, n: number, m: number): Step[] | null {
  const most = Math.min(n + m, MOST);
  const far = new Int32Array(2 * most + 3);
  const zero = most + 1;
  const past: Int32Array[] = [];
  for (let d = 0; d <= most; d += 1) {
    past.push(far.slice());
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && far[zero + k - 1]! < far[zero + k + 1]!) ? far[zero + k + 1]! : far[zero + k - 1]! + 1;
      while (x < n && x - k < m && old[head + x] === now[head + x - k]) x += 1;
      far[zero + k] = x;
      if (x >= n && x - k >= m) return back(past, zero, head, n, m);
    }
  }
  return null;
}

/** The way that the search went, from its end. */
function back(past: readonly Int32Array[], zero: number, head: number, n: number, m: number): Step[] {
  const out: Step[] = [];
  let [x, y] = [n, m];
  for (let d = past.length - 1; d >= 0; d -= 1) {
    const far = past[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && far[zero + k - 1]! < far[zero + k + 1]!);
    const before = down ? k + 1 : k - 1;
    const [fromX, fromY] = d === 0 ? [0, 0] : [far[zero + before]!, far[zero + before]! - before];
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      out.push({ change: "equal", old: head + x, now: head + y });
    }
    if (d === 0) break;
    if (down) out.push({ change: "added", old: head + x, now: head + (y -= 1) });
    else out.push({ change: "removed", old: head + (x -= 1), now: head + y });
  }
  return tidy(out.reverse());
}

/** Between two equal lines what was taken out comes before what was put in. */
function tidy(all: Step[]): Step[] {
  const out: Step[] = [];
  let added: Step[] = [];
  for (const step of all) {
    if (step.change === "added") added.push(step);
    else if (step.change === "removed") out.push(step);
    else {
      out.push(...added, step);
      added = [];
    }
  }
  return [...out, ...added];
}

/** The steps that are shown: changes with some lines around each; between them stands how many equal lines are left out, at least two. */
export function hunks(all: readonly Step[], around: number): (Step | number)[] {
  const near = new Uint8Array(all.length);
  all.forEach((step, at) => {
    if (step.change !== "equal") near.fill(1, Math.max(0, at - around), at + around + 1);
  });
  const out: (Step | number)[] = [];
  all.forEach((step, at) => {
    if (near[at] || (near[at - 1] && near[at + 1])) out.push(step);
    else if (typeof out.at(-1) === "number") (out[out.length - 1] as number) += 1;
    else out.push(1);
  });
  return out;
}

/** What models are writing now, put together from the pieces that come. */

import type { Writing } from "../../protocol";

export interface Answer {
  brief: string;
  model: string;
  why: string;
  /** When it began, on this browser's clock, in ms. */
  began: number;
  text: string;
  failed: string;
  /** When it ended, on the same clock; 0 while it is being written. */
  ended: number;
}

/** How long a whole answer stays in sight, in ms. */
export const LINGERS = 4000;

export class Writings {
  readonly answers = new Map<string, Answer>();

  /** Takes the pieces of one message. False where one before it was lost, so that the whole has to be asked for. */
  take(pieces: Writing[], now = performance.now()): boolean {
    let whole = true;
    for (const piece of pieces) {
      const known = this.answers.get(piece.brief);
      const text = known && !known.ended ? known.text : "";
      if (piece.at > text.length) {
        whole = false;
        continue;
      }
      this.answers.set(piece.brief, {
        brief: piece.brief,
        model: piece.model,
        why: piece.why,
        began: now - piece.seconds * 1000,
        text: text.slice(0, piece.at) + piece.text,
        failed: piece.failed,
        ended: 0,
      });
    }
    const open = new Set(pieces.map((piece) => piece.brief));
    for (const answer of this.answers.values()) if (!open.has(answer.brief) && !answer.ended) answer.ended = now;
    this.forget(now);
    return whole;
  }

  /** Drops what has been whole for a while. True while anything is left. */
  forget(now = performance.now()): boolean {
    for (const [brief, answer] of this.answers) if (answer.ended && now - answer.ended > LINGERS) this.answers.delete(brief);
    return this.answers.size > 0;
  }

  /** Those that are still being written. */
  get open(): Answer[] {
    return [...this.answers.values()].filter((answer) => !answer.ended);
  }

  /** Tokens of the answers that nobody has counted yet: about 3.5 bytes each. */
  get tokens(): number {
    return this.open.reduce((sum, answer) => sum + Math.ceil(answer.text.length / 3.5), 0);
  }
}

/** The compiler's stages as text: their names, a plain colouring that does for all of them, and which line comes from which. */

import { StreamLanguage } from "@codemirror/language";
import type { StringStream } from "@codemirror/language";
import type { Stage } from "../../protocol";

export const STAGES: Record<string, { name: string; about: string }> = {
  cuda: { name: "CUDA", about: "The CUDA C++ source." },
  ttir: { name: "TTIR", about: "Triton's own operations on whole blocks, before anything is laid out over threads." },
  ttgir: { name: "TTGIR", about: "The same with layouts: which thread holds which elements, and where they are exchanged through shared memory." },
  llir: { name: "LLIR", about: "LLVM's code of one thread." },
  ptx: { name: "PTX", about: "NVIDIA's portable assembly: registers are not assigned yet." },
  sass: { name: "SASS", about: "What the GPU executes, with real registers." },
  amdgcn: { name: "AMDGCN", about: "AMD's assembly: what the GPU executes." },
};

/** Comments, strings, numbers, values and operations look alike enough in MLIR, LLVM, PTX, SASS and AMDGCN to be told apart by one rule. */
export const stageLanguage = StreamLanguage.define<null>({
  startState: () => null,
  token(stream: StringStream): string | null {
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\/.*|^;.*|^\/\*.*?\*\//)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"/)) return "string";
    if (stream.match(/^[%$!#@][\w.$-]+/)) return "meta";
    if (stream.match(/^\b(?:R|UR|P|UP|v|s)\d+\b|^\b(?:RZ|PT|URZ)\b/)) return "meta";
    if (stream.match(/^-?0x[0-9a-f]+|^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b/i)) return "number";
    if (stream.match(/^\.\w+/)) return "keyword";
    if (stream.match(/^(?:tt|ttg|ttng|nvgpu|arith|math|scf|cf|amdgpu|llvm|gpu)\.[\w.]+/)) return "keyword";
    if (stream.match(/^\b(?:module|func|return|define|declare|call|ret|br|load|store|getelementptr|phi|select|entry|visible|reg|attributes)\b/)) return "keyword";
    if (stream.match(/^[A-Za-z_][\w.]*/)) return "variable";
    stream.next();
    return null;
  },
});

/** Which line of the candidate each line of a stage comes from, and back. Lines count from 1; 0 is none. */
export class LineMap {
  private readonly back = new Map<number, [number, number][]>();

  constructor(private readonly pairs: [number, number][], last: number) {
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

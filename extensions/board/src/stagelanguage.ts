/** A plain colouring that does for the text of all of the compiler's stages. */

import { StreamLanguage } from "@codemirror/language";
import type { StringStream } from "@codemirror/language";

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

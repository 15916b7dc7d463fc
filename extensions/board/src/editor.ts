/**
 * The editors, made ready when the first one is shown.
 *
 * CodeMirror is most of the module, and to set it up takes longer than to draw a board's first screen, which shows no editor.
 */

import type * as CodeMirror from "./codemirror";

export type { Language, Linked } from "./codemirror";

const ready = (): typeof CodeMirror => require("./codemirror");

export const showCode: typeof CodeMirror.showCode = (...rest) => ready().showCode(...rest);
export const showDiff: typeof CodeMirror.showDiff = (...rest) => ready().showDiff(...rest);
export const showLinked: typeof CodeMirror.showLinked = (...rest) => ready().showLinked(...rest);
export const editCode: typeof CodeMirror.editCode = (...rest) => ready().editCode(...rest);

/**
 * CodeMirror as the board uses it: reading Python, comparing two texts, editing one. Colours are the notebook's own.
 *
 * The second of the two modules that are built: nothing of it may be imported by the first but its types.
 */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import type { Extension } from "@codemirror/state";
import { Decoration, EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import type { DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Place } from "./plain";
import { stageLanguage } from "./stagelanguage";

/** What a text is written in: a candidate's Python, or a stage of the compiler. */
export type Language = "python" | "stage";

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.moduleKeyword, tags.operatorKeyword, tags.definitionKeyword], color: "var(--kw-code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--kw-code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--kw-code-number)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--kw-code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--kw-code-def)" },
  { tag: tags.meta, color: "var(--kw-code-meta)" },
  { tag: [tags.operator, tags.compareOperator, tags.arithmeticOperator], color: "var(--kw-code-operator)" },
  { tag: tags.standard(tags.name), color: "var(--kw-code-builtin)" },
]);

/** What changed within a line is underlined: a fill strong enough to be seen would make the text on it hard to read. */
const under = (kind: "added" | "removed"): string => `linear-gradient(var(--kw-${kind}-strong), var(--kw-${kind}-strong)) bottom / 100% 1px no-repeat`;

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--kw-code-ground)", color: "var(--kw-text)", fontSize: "var(--kw-code-size)", height: "100%" },
  "&.cm-focused": { outline: "none" }, // the box around it shows the focus: gutters would hide a part of it here
  ".cm-scroller": { fontFamily: "var(--kw-mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--kw-text)" },
  ".cm-cursor": { borderLeftColor: "var(--kw-text)" },
  ".cm-gutters": { backgroundColor: "var(--kw-code-ground)", color: "var(--kw-dim)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--kw-hover)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": { backgroundColor: "var(--kw-selection) !important" },
  ".cm-matchingBracket": { backgroundColor: "var(--kw-selection)", outline: "1px solid var(--kw-line)" },
  ".cm-panels": { backgroundColor: "var(--kw-ground-2)", color: "var(--kw-text)", borderColor: "var(--kw-line)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"⋯" !important' },
  ".cm-collapsedLines": { background: "var(--kw-ground-2)", color: "var(--kw-dim)" },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine, .cm-inlineChangedLine": { backgroundColor: "var(--kw-added)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedLine, .cm-deletedChunk": { backgroundColor: "var(--kw-removed)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText, .cm-deletedText": { background: under("removed"), textDecoration: "none" },
  "&.cm-merge-b .cm-changedText, .cm-insertedText": { background: under("added") },
  ".cm-deletedChunk": { paddingLeft: "6px" },
  ".kw-linked-line": { backgroundColor: "var(--kw-linked)" },
  ".kw-linked-first": { boxShadow: "inset 3px 0 0 var(--kw-brand)" },
});

const common: Extension = [
  lineNumbers(),
  highlightSpecialChars(),
  drawSelection(),
  bracketMatching(),
  highlightSelectionMatches(),
  search({ top: true }),
  keymap.of(searchKeymap),
  syntaxHighlighting(highlight),
  theme,
];

const base: Extension = [common, python(), indentUnit.of("    ")];
const staged: Extension = [common, stageLanguage];

/** Readable by keyboard, selectable, not editable. */
const reading: Extension = [EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0" })];

/** Shows a text. The signal ends the editor; `place` is where somebody was in the plain text that stood there before. */
export function showCode(parent: Element, text: string, label: string, signal: AbortSignal, place?: Place): void {
  const view = new EditorView({
    parent,
    state: EditorState.create({ doc: text, extensions: [base, reading, EditorView.contentAttributes.of({ "aria-label": label })] }),
  });
  resume(view, place);
  signal.addEventListener("abort", () => view.destroy());
}

/** Shows a text to be edited; `changed` gets it after each edit. */
export function editCode(parent: Element, text: string, label: string, changed: (text: string) => void, signal: AbortSignal, place?: Place): void {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      ...(place?.selected && { selection: { anchor: place.selected[0], head: place.selected[1] } }),
      extensions: [
        history(),
        indentOnInput(),
        highlightActiveLine(),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        base,
        EditorView.contentAttributes.of({ "aria-label": `${label}. Escape, then Tab, leaves the editor.`, tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  view.scrollDOM.removeAttribute("tabindex"); // the text in it has the focus
  resume(view, place);
  signal.addEventListener("abort", () => view.destroy());
}

/** Compares two texts: side by side where there is room, in one column where there is not. */
export function showDiff(
  parent: HTMLElement, old: string, now: string, labels: [string, string], signal: AbortSignal, language: Language = "python", place?: Place,
): void {
  const looks = language === "python" ? base : staged;
  const collapse = { margin: 3, minSize: 6 };
  const named = (label: string): Extension => EditorView.contentAttributes.of({ "aria-label": label });
  if (parent.clientWidth >= 720) {
    const merge = new MergeView({
      parent,
      a: { doc: old, extensions: [looks, reading, named(labels[0])] },
      b: { doc: now, extensions: [looks, reading, named(labels[1])] },
      collapseUnchanged: collapse,
      gutter: true,
    });
    resume(merge.b, place, merge.dom);
    signal.addEventListener("abort", () => merge.destroy());
    return;
  }
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: now,
      extensions: [looks, reading, named(labels.join(" against ")), unifiedMergeView({ original: old, mergeControls: false, collapseUnchanged: collapse, gutter: true })],
    }),
  });
  resume(view, place);
  signal.addEventListener("abort", () => view.destroy());
}

const setLinked = StateEffect.define<readonly [number, number][]>();
const linkedLine = Decoration.line({ class: "kw-linked-line" });
const linkedFirst = Decoration.line({ class: "kw-linked-line kw-linked-first" });

const linked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setLinked)) continue;
      const made = new RangeSetBuilder<Decoration>();
      const { doc } = transaction.state;
      for (const [from, until] of effect.value) {
        for (let line = from; line <= Math.min(until, doc.lines); line += 1) {
          const at = doc.line(line).from;
          made.add(at, at, line === from ? linkedFirst : linkedLine);
        }
      }
      return made.finish();
    }
    return marks.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** A text that is read beside another: it tells which of its lines is meant, and lights up the lines that it is told to. */
export interface Linked {
  light(ranges: readonly [number, number][], reveal: boolean): void;
}

/**
 * Shows a text whose lines are linked with another's. `meant` gets the line under the pointer, or 0 when it leaves; with `kept` true the
 * line was clicked or reached with the arrow keys, and stays meant.
 */
export function showLinked(
  parent: Element, text: string, label: string, language: Language, meant: (line: number, kept: boolean) => void, signal: AbortSignal,
  place?: Place, kept = 0,
): Linked {
  let at = kept;
  let hovered = 0;
  const lineUnder = (event: MouseEvent, view: EditorView): number => {
    const place = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
    return view.state.doc.lineAt(place).number;
  };
  const keep = (view: EditorView, line: number): void => {
    at = Math.min(view.state.doc.lines, Math.max(1, line));
    meant(at, true);
    view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(at).from, { y: "nearest", yMargin: 30 }) });
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        language === "python" ? base : staged,
        reading,
        linked,
        EditorView.contentAttributes.of({ "aria-label": `${label}. The arrow keys walk through its lines.` }),
        EditorView.domEventHandlers({
          mousemove(event, self) {
            const line = lineUnder(event, self);
            if (line !== hovered) meant((hovered = line), false);
          },
          mouseleave() {
            hovered = 0;
            meant(0, false);
          },
          click(event, self) {
            keep(self, lineUnder(event, self));
          },
          keydown(event, self) {
            const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
            const step = by[event.key];
            if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return false;
            keep(self, at + step);
            event.preventDefault();
            return true;
          },
        }),
      ],
    }),
  });
  resume(view, place);
  signal.addEventListener("abort", () => view.destroy());
  return {
    light(ranges, reveal) {
      const first = ranges[0];
      const scroll = reveal && first ? [EditorView.scrollIntoView(view.state.doc.line(Math.min(first[0], view.state.doc.lines)).from, { y: "center" })] : [];
      view.dispatch({ effects: [setLinked.of(ranges), ...scroll] });
    },
  };
}

/** Goes to where somebody was in the plain text. Lines have their height only when the editor has measured itself. */
function resume(view: EditorView, place: Place | undefined, scrolled: HTMLElement = view.scrollDOM): void {
  if (!place) return;
  if (place.focused) view.contentDOM.focus({ preventScroll: true });
  if (!place.line && !place.left) return;
  const { doc } = view.state;
  const whole = Math.floor(place.line);
  view.requestMeasure({
    read: () => view.lineBlockAt(doc.line(Math.min(doc.lines, whole + 1)).from).top + (place.line - whole) * view.defaultLineHeight,
    write(top) {
      scrolled.scrollTop = top;
      view.scrollDOM.scrollLeft = place.left;
    },
  });
}

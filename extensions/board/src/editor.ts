/** CodeMirror as the board uses it: reading Python, comparing two texts, editing one. Colours are the notebook's own. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import type { Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const token = (name: string, fallback: string): string => `var(--jp-mirror-editor-${name}-color, var(--kw-code-${fallback}))`;

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.moduleKeyword, tags.operatorKeyword, tags.definitionKeyword], color: token("keyword", "keyword"), fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: token("string", "string") },
  { tag: [tags.number, tags.bool, tags.null], color: token("number", "number") },
  { tag: [tags.comment, tags.lineComment], color: token("comment", "comment"), fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: token("def", "def") },
  { tag: tags.meta, color: token("meta", "meta") },
  { tag: [tags.operator, tags.compareOperator, tags.arithmeticOperator], color: token("operator", "operator") },
  { tag: tags.standard(tags.name), color: token("builtin", "builtin") },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--kw-code-ground)", color: "var(--kw-text)", fontSize: "var(--kw-code-size)", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--kw-focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--kw-mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--kw-text)" },
  ".cm-cursor": { borderLeftColor: "var(--kw-text)" },
  ".cm-gutters": { backgroundColor: "var(--kw-code-ground)", color: "var(--kw-faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--kw-hover)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": { backgroundColor: "var(--kw-selection) !important" },
  ".cm-matchingBracket": { backgroundColor: "var(--kw-selection)", outline: "1px solid var(--kw-line)" },
  ".cm-panels": { backgroundColor: "var(--kw-ground-2)", color: "var(--kw-text)", borderColor: "var(--kw-line)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"⋯" !important' },
  ".cm-collapsedLines": { background: "var(--kw-ground-2)", color: "var(--kw-dim)" },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine, .cm-inlineChangedLine": { backgroundColor: "var(--kw-added)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedLine, .cm-deletedChunk": { backgroundColor: "var(--kw-removed)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText, .cm-deletedText": { background: "var(--kw-removed-strong)" },
  "&.cm-merge-b .cm-changedText, .cm-insertedText": { background: "var(--kw-added-strong)" },
  ".cm-deletedChunk": { paddingLeft: "6px" },
});

const base: Extension = [
  lineNumbers(),
  highlightSpecialChars(),
  drawSelection(),
  bracketMatching(),
  highlightSelectionMatches(),
  search({ top: true }),
  keymap.of(searchKeymap),
  python(),
  indentUnit.of("    "),
  syntaxHighlighting(highlight),
  theme,
];

/** Readable by keyboard, selectable, not editable. */
const reading: Extension = [EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0" })];

/** Shows a text. The signal ends the editor. */
export function showCode(parent: Element, text: string, label: string, signal: AbortSignal): void {
  const view = new EditorView({
    parent,
    state: EditorState.create({ doc: text, extensions: [base, reading, EditorView.contentAttributes.of({ "aria-label": label })] }),
  });
  signal.addEventListener("abort", () => view.destroy());
}

/** Shows a text to be edited; `changed` gets it after each edit. */
export function editCode(parent: Element, text: string, label: string, changed: (text: string) => void, signal: AbortSignal): void {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        indentOnInput(),
        highlightActiveLine(),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        base,
        EditorView.contentAttributes.of({ "aria-label": `${label}. Escape, then Tab, leaves the editor.` }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  signal.addEventListener("abort", () => view.destroy());
}

/** Compares two texts: side by side where there is room, in one column where there is not. */
export function showDiff(parent: HTMLElement, old: string, now: string, labels: [string, string], signal: AbortSignal): void {
  const collapse = { margin: 3, minSize: 6 };
  const named = (label: string): Extension => EditorView.contentAttributes.of({ "aria-label": label });
  if (parent.clientWidth >= 720) {
    const merge = new MergeView({
      parent,
      a: { doc: old, extensions: [base, reading, named(labels[0])] },
      b: { doc: now, extensions: [base, reading, named(labels[1])] },
      collapseUnchanged: collapse,
      gutter: true,
    });
    signal.addEventListener("abort", () => merge.destroy());
    return;
  }
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: now,
      extensions: [base, reading, named(labels.join(" against ")), unifiedMergeView({ original: old, mergeControls: false, collapseUnchanged: collapse, gutter: true })],
    }),
  });
  signal.addEventListener("abort", () => view.destroy());
}

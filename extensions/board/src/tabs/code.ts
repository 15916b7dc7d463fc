/** The variant's source, as the judge got it. */

import { copyButton } from "../clipboard";
import { h } from "../dom";
import { showCode } from "../editor";
import * as format from "../format";
import type { Tab } from "../inspector";

export const codeTab: Tab = (panel, detail, _store, signal) => {
  const { candidate, row } = detail;
  const lines = candidate.source.split("\n").length;
  const copy = copyButton(() => candidate.source);
  const chosen = format.parameters(row.parameters);
  const box = h("div", { class: "kw-code-box kw-fill" });
  panel.append(
    h(
      "div",
      { class: "kw-bar-line" },
      h("span", { class: "kw-dim" }, `${candidate.backend}, defines ${candidate.entry}, ${lines} lines${chosen ? ` · best with ${chosen}` : ""}`),
      h("span", { class: "kw-gap" }),
      copy,
    ),
    box,
  );
  showCode(box, candidate.source, `Source of ${candidate.id}`, signal);
};

/** Tables of the Why tab: what each kernel takes of the card, and every point of the tunable space that was tried. */

import type { Detail, Evaluation, Resources } from "../../../protocol";
import { h } from "../dom";
import * as format from "../format";
import { WORDS } from "../glossary";
import { VERDICTS, icon } from "../verdicts";
import { grid, heading } from "./parts";

interface Field {
  label: string;
  title: string;
  text(of: Resources): string;
  /** Whether the figure deserves a second look. */
  poor?(of: Resources): boolean;
}

const FIELDS: Field[] = [
  { label: "grid", title: "Programs per axis.", text: (of) => of.grid.join("×") },
  { label: "warps", title: "Warps per program, and pipeline stages.", text: (of) => (of.stages > 1 ? `${of.warps}, ${of.stages} stages` : String(of.warps)) },
  { label: "registers", title: WORDS.registers, text: (of) => String(of.registers), poor: (of) => of.registers >= 200 },
  { label: "spills", title: WORDS.spills, text: (of) => (of.spill_bytes ? `${of.spill_bytes} B` : "none"), poor: (of) => of.spill_bytes > 0 },
  { label: "shared", title: WORDS.shared, text: (of) => (of.shared_bytes ? format.bytes(of.shared_bytes) : "none") },
  {
    label: "occupancy",
    title: WORDS.occupancy,
    text: (of) => `${format.percent(of.occupancy)}${of.limited_by ? `, by ${of.limited_by}` : ""}`,
    poor: (of) => of.occupancy > 0 && of.occupancy < 0.25,
  },
  { label: "waves", title: WORDS.waves, text: (of) => format.figure(of.waves) },
  { label: "vector", title: WORDS.vector, text: (of) => (of.vector_bytes ? `${of.vector_bytes} B` : "–"), poor: (of) => of.vector_bytes > 0 && of.vector_bytes < 8 },
  { label: "tensor cores", title: "Whether it has matrix instructions, and in which precision.", text: (of) => (of.tensor_cores ? of.dot_precision || "yes" : "no") },
];

export function resources(evaluation: Evaluation): HTMLElement[] {
  if (!evaluation.resources.length) return [];
  const kernels = evaluation.resources;
  const title = kernels.length === 1 ? "What the kernel takes" : `What its ${kernels.length} kernels take`;
  const rows = kernels.map((kernel) =>
    h("tr", {},
      h("th", { scope: "row", class: "kw-mono" }, kernel.launches > 1 ? `${kernel.kernel} ×${kernel.launches}` : kernel.kernel),
      ...FIELDS.map((field) => {
        const poor = field.poor?.(kernel) ?? false;
        return h("td", { class: poor ? "kw-poor" : "", title: poor ? `Worth a look. ${field.title}` : field.title }, field.text(kernel), poor && " !");
      }),
    ),
  );
  return [heading(title), grid([{ label: "kernel" }, ...FIELDS], rows, title)];
}

export function evaluations(detail: Detail, shown: string): HTMLElement[] {
  const all = detail.evaluations;
  const title = all.length === 1 ? "Judged once" : `Judged ${all.length} times`;
  const rows = all.map((evaluation) => {
    const look = VERDICTS[evaluation.verdict];
    return h("tr", { class: evaluation.id === shown ? "kw-shown" : "" },
      h("th", { scope: "row" }, evaluation.id, evaluation.id === shown && all.length > 1 && h("span", { class: "kw-badge" }, "shown")),
      h("td", { class: "kw-mono" }, format.parameters(evaluation.parameters) || "–"),
      h("td", {}, h("span", { class: `kw-verdict kw-${look.tone}` }, icon(evaluation.verdict), h("span", {}, look.word))),
      h("td", { class: `kw-num${evaluation.timing?.modelled ? " kw-num-modelled" : ""}` }, format.time(evaluation.timing?.median_us)),
      h("td", {}, evaluation.mode),
      h("td", {}, evaluation.reason || "–"),
    );
  });
  return [heading(title), grid(["evaluation", "parameters", "verdict", "time", "mode", "reason"].map((label) => ({ label })), rows, title)];
}

/** What can be accepted only with the person's consent, in words that say what is consented to; `refuse_unless_fit` in Python decides. */

import type { Row } from "../../protocol";

/** How the label of a kernel begins that leaves buffers of a model as they were. */
export const STALE = "does not update ";

/** What a person has to know and to agree to; empty where a variant can be accepted, or refused, without. */
export function consentTo(row: Row): string {
  if (row.verdict === "lower_precision") {
    return "It is right only with the round-off of a coarser type: its results are less exact than the reference's. Take it where that is exact enough.";
  }
  if (row.verdict === "not_judged") {
    return `Nobody could check it here${row.reason ? ` (${row.reason})` : ""}: nothing says that it is right, or how fast it is. Taking it is your own responsibility.`;
  }
  const stale = row.verdict === "right" ? row.labels.find((label) => label.startsWith(STALE)) : undefined;
  if (!stale) return "";
  return `It ${stale}, as the reference does. What a call returns is right, but after training with it the model would be another one in eval mode. Take it where nobody reads these buffers.`;
}

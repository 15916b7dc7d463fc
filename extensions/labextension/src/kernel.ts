/**
 * Questions to a notebook's kernel that leave no trace in the notebook: a silent request with one expression, answered by
 * `workbench.notebook.bridge`. A kernel that runs a cell would answer only when it has ended, so it is not asked then.
 */

import type { NotebookPanel } from "@jupyterlab/notebook";

/** Why there is no answer, in words for the person. */
export class Unanswered extends Error {
  constructor(
    message: string,
    readonly busy = false,
  ) {
    super(message);
  }
}

/** How long a kernel may be busy with small things, its own start for one, before it counts as running a cell; in ms. */
const PATIENCE = 1500;

/** Calls a function of the bridge with plain arguments. */
export async function ask<T>(panel: NotebookPanel, name: string, ...given: readonly (string | number)[]): Promise<T> {
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel || kernel.status === "dead" || kernel.status === "terminating") {
    throw new Unanswered("This notebook has no kernel: start one, then ask again.");
  }
  for (let waited = 0; kernel.status === "busy" && waited < PATIENCE; waited += 100) await new Promise((go) => setTimeout(go, 100));
  if (kernel.status === "busy") throw new Unanswered("The kernel is running a cell; it answers when that has ended.", true);
  const call = `__import__("workbench.notebook.bridge", fromlist=["bridge"]).${name}(${given.map((one) => JSON.stringify(one)).join(", ")})`;
  const future = kernel.requestExecute({
    code: "",
    silent: true,
    store_history: false,
    allow_stdin: false,
    stop_on_error: false,
    user_expressions: { answer: call },
  });
  const { content } = await future.done;
  const answer = content.user_expressions?.["answer"];
  if (!answer) throw new Unanswered("This kernel does not answer: the workbench needs a Python kernel.");
  if (answer.status === "error") {
    const absent = answer.ename === "ModuleNotFoundError";
    throw new Unanswered(absent ? "The workbench is not installed in this notebook's Python: pip install kernel-workbench there." : answer.evalue);
  }
  const said = answer.data["application/json"] as (T & { error?: string }) | undefined;
  if (!said) throw new Unanswered("This kernel's workbench is of another version: restart the kernel.");
  if (said.error) throw new Unanswered(said.error);
  return said;
}

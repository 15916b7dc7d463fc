/** The commands, each also in the palette and (see schema/plugin.json) with a shortcut that people can change. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { Notification } from "@jupyterlab/apputils";
import type { ICommandPalette } from "@jupyterlab/apputils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { boardIn, press } from "./boards";
import { evolve } from "./cells";
import { icon } from "./icon";
import { Unanswered, ask } from "./kernel";

export const CATEGORY = "Kernel Workbench";

/** Label, what it does, and whether the kernel can be asked where the notebook shows no board. */
const VERBS: Record<string, readonly [string, string, boolean]> = {
  step: ["Step", "Judges one more variant.", true],
  auto: ["Auto", "Runs until the budget ends.", true],
  pause: ["Pause", "No new candidates; the running ones finish.", true],
  resume: ["Resume", "Goes on after a pause.", true],
  stop: ["Stop", "Finishes the running ones, then ends.", true],
  accept: ["Accept the Selected Variant", "Judges it once more, then puts plain code into a new cell below.", false],
};

export function addCommands(app: JupyterFrontEnd, notebooks: INotebookTracker, palette: ICommandPalette | null): void {
  const { commands } = app;
  const add = (id: string, options: Parameters<typeof commands.addCommand>[1]): void => {
    commands.addCommand(id, { describedBy: { args: { type: "object", properties: {} } }, ...options });
    palette?.addItem({ command: id, category: CATEGORY });
  };
  const onCode = (): boolean => notebooks.activeCell?.model.type === "code";
  add("kernel-workbench:evolve-cell", {
    label: "Evolve This Cell",
    caption: "Make this cell's op fast: puts %%evolve_kernel on top of it, or goes to its board",
    icon,
    isEnabled: onCode,
    isVisible: onCode,
    execute: async () => {
      const [panel, cell] = [notebooks.currentWidget, notebooks.activeCell];
      if (panel && cell && onCode()) await evolve(panel, cell);
    },
  });
  for (const [verb, [label, caption, askable]] of Object.entries(VERBS)) {
    add(`kernel-workbench:${verb}`, {
      label,
      caption,
      isEnabled: () => notebooks.currentWidget !== null,
      execute: async () => {
        const panel = notebooks.currentWidget;
        if (panel) await perform(panel, verb, label, askable);
      },
    });
  }
  notebooks.activeCellChanged.connect(() => commands.notifyCommandChanged("kernel-workbench:evolve-cell"));
}

async function perform(panel: NotebookPanel, verb: string, label: string, askable: boolean): Promise<void> {
  const done = press(boardIn(panel), verb);
  if (done.kind === "refused") Notification.warning(`${label}: ${done.reason}`, { autoClose: 6000 });
  if (done.kind !== "none") return;
  if (!askable) {
    Notification.warning(`${label}: this notebook shows no board. Run a cell with %%evolve_kernel, or %evolve_kernel open.`, { autoClose: 8000 });
    return;
  }
  try {
    const { said } = await ask<{ said: string }>(panel, "act", verb);
    Notification.success(said, { autoClose: 4000 });
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    Notification.warning(`${label}: ${error.message}`, { autoClose: 8000 });
  }
}

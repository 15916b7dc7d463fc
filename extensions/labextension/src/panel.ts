/**
 * The side panel: the runs that this notebook shows, and those in the store beside it.
 *
 * The first are read from the notebook's outputs and need no kernel. The store lies in a hidden folder, which the server gives to no
 * browser, so the second are asked of the notebook's kernel; where that can't answer, the panel says why and what to do.
 */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { MainAreaWidget } from "@jupyterlab/apputils";
import type { Cell, INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { Widget } from "@lumino/widgets";
import { button, h, missing, put } from "../../board/src/dom";
import * as format from "../../board/src/format";
import { RECORD } from "../../bridge";
import { boardOf, goTo } from "./boards";
import { icon } from "./icon";
import { Unanswered, ask } from "./kernel";
import { RecordView } from "./record";
import type { RunRecord } from "./record";

/** One run of the store, as `workbench.notebook.bridge.runs` gives it. */
interface KeptRun {
  id: string;
  name: string;
  target: string;
  state: string;
  created: number;
  candidates: number;
  best: string;
  best_us: number | null;
  modelled: boolean;
  live: boolean;
}
interface Kept {
  place: string;
  runs: KeptRun[];
}

/** How often the panel looks at the notebook's outputs while it is open, in ms. */
const LOOK = 2000;

export class RunsPanel extends Widget {
  private readonly here = h("div", { class: "kw-runs-list" });
  private readonly kept = h("div", { class: "kw-runs-list" });
  private readonly refresh = button("List the store", "Asks this notebook's kernel; nothing is run in the notebook.", () => void this.list());
  private panel: NotebookPanel | null = null;
  private asking = 0;
  private shownHere = "";
  private watching: ReturnType<typeof setInterval> | undefined;
  private readonly heard = (): void => this.follow();
  private readonly changed = (): void => this.renderHere();

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly notebooks: INotebookTracker,
  ) {
    super();
    this.id = "kernel-workbench-runs";
    this.addClass("kw-runs");
    Object.assign(this.title, { caption: "Kernel Workbench: runs", icon });
    this.node.append(
      h("header", {}, h("h2", {}, "Kernel Workbench")),
      h("section", { "aria-label": "In this notebook" }, h("h3", {}, "In this notebook"), this.here),
      h("section", { "aria-label": "In the store" }, h("h3", {}, "In the store", this.refresh), this.kept),
    );
    notebooks.currentChanged.connect(this.heard);
    notebooks.activeCellChanged.connect(this.changed);
    this.follow();
  }

  protected override onAfterShow(): void {
    this.follow();
    this.watching ??= setInterval(this.changed, LOOK);
  }

  protected override onBeforeHide(): void {
    clearInterval(this.watching);
    this.watching = undefined;
  }

  private follow(): void {
    this.panel = this.notebooks.currentWidget;
    this.asking += 1;
    this.refresh.disabled = this.panel === null;
    const why = this.panel ? "Runs are kept in .workbench/ beside the notebook. Press List the store to ask this notebook's kernel for them." : "Open a notebook to see the runs beside it.";
    put(this.kept, missing(why));
    this.shownHere = "";
    this.renderHere();
  }

  private renderHere(): void {
    if (!this.isVisible) return;
    const { panel } = this;
    const found = (panel?.content.widgets ?? []).flatMap((cell) => records(cell).map((record) => ({ cell, record })));
    const now = JSON.stringify(found.map(({ cell, record: { snapshot } }) => [snapshot.header.run, snapshot.header.best, snapshot.header.candidates, boardOf(cell) !== null])) + document.querySelectorAll(".kw-board").length;
    if (now === this.shownHere) return;
    this.shownHere = now;
    const bare = (panel?.content.widgets ?? []).filter((cell) => boardOf(cell) && !found.some((one) => one.cell === cell));
    if (!panel || (!found.length && !bare.length)) {
      put(this.here, missing(panel ? "No cell of this notebook shows a run. Put %%evolve_kernel on top of a cell that defines and calls an op." : "No notebook is open."));
      return;
    }
    put(this.here, ...found.map(({ cell, record }) => this.shown(panel, cell, record)), ...bare.map((cell) => this.live(panel, cell)));
  }

  private shown(panel: NotebookPanel, cell: Cell, record: RunRecord): HTMLElement {
    const { header } = record.snapshot;
    const board = boardOf(cell);
    return entry(
      header.name,
      [board ? "live" : "saved", header.best ? time(header.best.time_us, header.best.modelled) : "nothing right yet", variants(header.candidates)],
      header.run,
      button("Go to its cell", "Scrolls to where it is shown.", () => void goTo(panel, cell, board ?? cell.outputArea?.node ?? cell.node)),
    );
  }

  /** A board that stands alone, as `workbench.board.Board` shows it. */
  private live(panel: NotebookPanel, cell: Cell): HTMLElement {
    const board = boardOf(cell)!;
    const read = (part: string): string => board.querySelector(part)?.textContent ?? "";
    return entry(read(".kw-op"), ["live", read(".kw-state")], read(".kw-shapes"), button("Go to its cell", "Scrolls to where it is shown.", () => void goTo(panel, cell, board)));
  }

  private async list(): Promise<void> {
    const { panel } = this;
    if (!panel) return;
    const asked = (this.asking += 1);
    put(this.kept, missing("Asking the kernel…"));
    try {
      const kept = await ask<Kept>(panel, "runs");
      if (asked === this.asking) this.renderKept(panel, kept);
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      if (asked === this.asking) put(this.kept, missing(error.message));
    }
  }

  private renderKept(panel: NotebookPanel, { place, runs }: Kept): void {
    const where = h("p", { class: "kw-dim kw-runs-place", title: place }, h("bdi", { dir: "ltr" }, place));
    if (!runs.length) {
      put(this.kept, where, missing("The store is empty: no run has begun in this folder yet."));
      return;
    }
    put(this.kept, where, ...runs.map((run) =>
      entry(
        run.name,
        [run.live ? "in this kernel" : run.state, run.best_us === null ? "nothing right yet" : time(run.best_us, run.modelled), variants(run.candidates), run.target],
        `${run.id} · ${new Date(run.created * 1000).toLocaleString()}`,
        button("Look", "Opens its record in a tab. The notebook is not changed.", () => void this.look(panel, run)),
        button("Open in notebook", "Adds a cell with %evolve_kernel open below the active one. It is not run.", () => insert(panel, run.id)),
      ),
    ));
  }

  private async look(panel: NotebookPanel, run: KeptRun): Promise<void> {
    try {
      const record = await ask<RunRecord>(panel, "record", run.id);
      const content = new RecordView(false);
      content.show(record);
      const tab = new MainAreaWidget({ content });
      tab.id = `kernel-workbench-run-${run.id}-${Date.now()}`;
      Object.assign(tab.title, { label: run.id, caption: `Record of ${run.name}`, icon, closable: true });
      this.app.shell.add(tab, "main");
      this.app.shell.activateById(tab.id);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.kept.prepend(missing(error.message));
    }
  }
}

function entry(name: string, facts: readonly string[], foot: string, ...actions: HTMLElement[]): HTMLElement {
  return h("article", { class: "kw-run" },
    h("h4", {}, name),
    h("p", {}, facts.join(" · ")),
    h("p", { class: "kw-dim" }, foot),
    h("p", { class: "kw-run-verbs" }, ...actions),
  );
}

function variants(count: number): string {
  return count === 1 ? "1 variant" : `${format.count(count)} variants`;
}

function time(us: number, modelled: boolean): string {
  return `best ${format.time(us)}${modelled ? " modelled" : ""}`;
}

function records(cell: Cell): RunRecord[] {
  if (!cell.outputArea?.node.querySelector(".kw-record")) return []; // other outputs can be large
  const outputs = cell.outputArea?.model.toJSON() ?? [];
  return outputs.map((output) => output.data?.[RECORD] as RunRecord | undefined).filter((record) => record?.snapshot?.header !== undefined) as RunRecord[];
}

function insert(panel: NotebookPanel, run: string): void {
  const notebook = panel.content.model?.sharedModel;
  if (!notebook) return;
  const at = Math.min(panel.content.activeCellIndex + 1, notebook.cells.length);
  notebook.insertCell(at, { cell_type: "code", source: `%evolve_kernel open ${run}` });
  setTimeout(() => {
    panel.content.activeCellIndex = at;
    void panel.content.scrollToItem?.(at, "smart");
  }, 0);
}

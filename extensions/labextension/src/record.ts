/**
 * A run that was saved with its notebook, shown by the board itself: no kernel is needed, and it can't change anything.
 *
 * The record is JSON that anybody can have written, so it is shown whether or not the notebook is trusted: the board puts every text in
 * as text and runs nothing of it.
 */

import { Widget } from "@lumino/widgets";
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import type { Detail, FromBrowser, FromPython, SnapshotMessage } from "../../protocol";
import { h, put } from "../../board/src/dom";
import type { Editors } from "../../board/src/bring";
import type { Model } from "../../board/src/model";
import { RECORD } from "../../bridge";

/** What `workbench.notebook.bridge_record` writes. */
export interface RunRecord {
  version: number;
  headline: string;
  snapshot: SnapshotMessage;
  details: Record<string, Detail>;
  /** Variants that the record leaves out. */
  left_out: number;
}

/** When to look whether a live board stands beside the record, in ms after it was shown: a slow kernel takes its time. */
const LOOKS = [1500, 4000, 10_000];

/** Answers a board from a record as Python would from a run. */
class RecordModel implements Model {
  private readonly listeners = new Set<(content: FromPython) => void>();
  private seq = 0;

  constructor(private record: RunRecord) {}

  /** Shows a later record of the run in the same board. */
  update(record: RunRecord): void {
    this.record = record;
    this.send({ type: "snapshot", view: "" });
  }

  get(): unknown {
    return undefined;
  }
  set(): void {}
  save_changes(): void {}
  /** No kernel has to be asked for them here. */
  editors(): Promise<Editors> {
    return import("../../board/src/codemirror");
  }
  on(event: string, listener: unknown): void {
    if (event === "msg:custom") this.listeners.add(listener as (content: FromPython) => void);
  }
  off(event: string, listener: unknown): void {
    if (event === "msg:custom") this.listeners.delete(listener as (content: FromPython) => void);
  }
  send(content: FromBrowser): void {
    const answer = this.answer(content);
    if (answer) queueMicrotask(() => this.listeners.forEach((listener) => listener(answer)));
  }

  private answer(asked: FromBrowser): FromPython | null {
    const { run } = this.record.snapshot.header;
    const missing = `the record keeps the best variants only; workbench.open("${run}") has them all`;
    const stored = `this is the record of a run; workbench.open("${run}") opens the run itself`;
    switch (asked.type) {
      case "snapshot":
        return { ...this.record.snapshot, seq: (this.seq += 1) };
      case "detail": {
        const detail = this.record.details[asked.id] ?? null;
        return { type: "detail", id: asked.id, detail, error: detail ? "" : missing };
      }
      case "prompt":
        return { type: "prompt", id: asked.id, prompt: null, error: stored };
      case "inspect":
        return { type: "inspection", request: asked.request, stage: "failed", message: stored, report: null };
      case "do":
        return { type: "said", request: asked.request, level: "error", text: stored };
      default:
        return null;
    }
  }
}

/** A record as a widget; `folded` leaves one line that the person can open. */
export class RecordView extends Widget {
  private readonly details = h("details", { class: "kw-record-fold" });
  private readonly headline = h("summary", {});
  private readonly place = h("div", { class: "kw-record-board" });
  private record: RunRecord | null = null;
  private model: RecordModel | null = null;
  private end: (() => void) | null = null;
  /** The person has decided whether it is open. */
  private touched = false;
  private waiting: ReturnType<typeof setTimeout>[] = [];

  constructor(private readonly whenAlone: boolean) {
    super();
    this.addClass("kw-record");
    this.details.append(this.headline, this.place);
    this.details.addEventListener("toggle", () => void this.draw());
    this.details.addEventListener("pointerdown", () => (this.touched = true));
    this.headline.addEventListener("click", () => (this.touched = true));
    this.node.append(this.details);
  }

  show(record: RunRecord): void {
    check(record);
    this.record = record;
    put(this.headline, record.headline);
    this.settle();
    void this.draw();
  }

  protected override onAfterAttach(): void {
    this.settle();
  }

  override dispose(): void {
    this.waiting.forEach(clearTimeout);
    this.end?.();
    super.dispose();
  }

  /** Beside a live board the record is folded; where there is none, as after a restart, it is open. */
  private settle(): void {
    if (!this.whenAlone) this.details.open = true;
    this.waiting.forEach(clearTimeout);
    if (!this.whenAlone || !this.isAttached) return;
    const look = (): void => {
      if (!this.touched && !this.isDisposed) this.details.open = !this.besideABoard();
    };
    this.waiting = LOOKS.map((after) => setTimeout(look, after));
  }

  private besideABoard(): boolean {
    const boards = this.node.closest(".jp-OutputArea")?.querySelectorAll(".kw-board") ?? [];
    return [...boards].some((board) => !board.closest(".kw-record"));
  }

  private async draw(): Promise<void> {
    const { record } = this;
    if (!record || !this.details.open) return;
    if (this.model) {
      this.model.update(record);
      return;
    }
    this.model = new RecordModel(record);
    const { default: board } = await import("../../board/src/main");
    if (this.isDisposed) return;
    this.end = board.render({ model: this.model, el: this.place });
    if (record.left_out > 0) {
      this.place.append(h("p", { class: "kw-record-note" }, `${record.left_out} more variants are in the store: workbench.open("${record.snapshot.header.run}")`));
    }
  }
}

/** JupyterLab's renderer of one output. */
class RecordRenderer extends RecordView {
  constructor() {
    super(true);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    try {
      this.show(model.data[RECORD] as RunRecord);
    } catch (error) {
      put(this.node,
        h("p", {}, `This record of a run can't be shown (${error instanceof Error ? error.message : String(error)}). As text:`),
        h("pre", {}, String(model.data["text/plain"] ?? "")),
      );
    }
  }
}

function check(record: RunRecord): void {
  if (typeof record !== "object" || record === null) throw new Error("it is empty");
  if (record.version !== 1) throw new Error("it was written by a newer Kernel Workbench");
  if (!record.snapshot?.header?.run || !Array.isArray(record.snapshot.upserts)) throw new Error("it is damaged");
}

export const mimeExtension = {
  id: "kernel-workbench:record",
  description: "Shows runs that were saved with their notebook.",
  rendererFactory: { safe: true, mimeTypes: [RECORD], createRenderer: () => new RecordRenderer() },
  rank: 30, // before text/html
  dataType: "json",
};

/**
 * What the browser knows of the run. Each view of a board has its own.
 *
 * Deltas are numbered. One that comes out of turn means that the server dropped messages, so the store asks for a snapshot and
 * takes no delta until it has come. Details are fetched by id and kept until the variant's row changes.
 */

import type { Detail, FromPython, Header, LogLine, Point, Prompt, Roof, Row, SnapshotMessage } from "../../protocol";
import type { Model } from "./model";
import { INITIAL, arrange } from "./order";
import { unpackPoints, unpackRows } from "./packed";
import { Tally } from "./tally";
import { Writings } from "./writings";

export type Topic = "run" | "selected" | "detail" | "writing";
export type Private = Extract<FromPython, { type: "said" | "accept" | "inspection" | "file" | "editors" }>;
type Hearer = (message: Private, buffers: DataView[]) => void;

const LOG_LINES = 2000;
/** Deltas whose rows are remembered as changed: a view that is drawn once a frame is never so far behind. */
const REMEMBERED = 100;
/** How long a message may be on its way, in ms, before it counts as lost. */
const LOST_AFTER = 2000;

export class Store {
  readonly rows = new Map<string, Row>();
  readonly points: Point[] = [];
  readonly log: LogLine[] = [];
  readonly writings = new Writings();
  readonly tally = new Tally();
  header: Header | null = null;
  roof: Roof | null = null;
  texts: SnapshotMessage["texts"] = { reference: "", cell: "" };
  selected = "";
  /** Counts points that took the place of earlier ones, and snapshots. */
  replaced = 0;
  /** Counts changes of rows, so that views know when to look at them. */
  version = 0;
  /** Counts the times that all rows were given up for others. */
  renewed = 0;

  private readonly view = Math.random().toString(36).slice(2);
  private seq = -1;
  private asked = false;
  /** Until the person selects something, the board follows the best variant. */
  private following = true;
  private readonly details = new Map<string, Detail>();
  private readonly failures = new Map<string, string>();
  private readonly wanted = new Set<string>();
  private readonly seen = new Map<string, number>();
  private readonly listeners = new Map<Topic, Set<() => void>>();
  private readonly privates = new Map<string, Hearer>();
  private readonly prompts = new Map<string, Prompt | string>();
  private readonly changes: { version: number; ids: string[] }[] = [];

  constructor(
    readonly model: Model,
    signal: AbortSignal,
  ) {
    const receive = (message: FromPython, buffers?: DataView[]): void => this.receive(message, buffers ?? []);
    const choose = (): void => this.choose(String(model.get("selected") ?? ""), false);
    model.on("msg:custom", receive);
    model.on("change:selected", choose);
    const check = (): void => {
      const timer = setTimeout(() => this.catchUp(Number(model.get("seq") ?? 0)), LOST_AFTER);
      signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    };
    model.on("change:seq", check);
    signal.addEventListener("abort", () => {
      model.off("msg:custom", receive);
      model.off("change:selected", choose);
      model.off("change:seq", check);
      model.send({ type: "gone", view: this.view });
    });
    this.selected = String(model.get("selected") ?? "");
    this.following = this.selected === "";
    this.ask();
  }

  on(topic: Topic, signal: AbortSignal, listener: () => void): void {
    const listeners = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, listeners.add(listener));
    signal.addEventListener("abort", () => listeners.delete(listener));
  }

  /** Hears the answers to one request. Everybody gets every message; only who asked may act on it. */
  hear(request: string, listener: Hearer): void {
    this.privates.set(request, listener);
  }

  /** Ids of the rows that changed since a version; null where nobody knows any more. */
  changedSince(version: number): Set<string> | null {
    if (this.changes.length && this.changes[0]!.version > version + 1) return null;
    return new Set(this.changes.filter((change) => change.version > version).flatMap((change) => change.ids));
  }

  row(id: string): Row | undefined {
    return this.rows.get(id);
  }

  island(name: string): number {
    return Math.max(0, this.header?.islands.findIndex((island) => island.name === name) ?? 0);
  }

  /** The first word of an island's name, which tells it apart in a narrow column; all of it where it does not. */
  islandShort(name: string): string {
    const first = name.split(" ")[0]!;
    return this.header?.islands.some((other) => other.name !== name && other.name.split(" ")[0] === first) ? name : first;
  }

  choose(id: string, share = true): void {
    this.following = false;
    if (id === this.selected) return;
    this.selected = id;
    if (share) {
      this.model.set("selected", id);
      this.model.save_changes();
    }
    this.tell("selected");
  }

  /** The detail of a variant if it is here; otherwise it is asked for, and topic `detail` tells when it has come. */
  detail(id: string): Detail | undefined {
    const known = this.details.get(id);
    if (!known && id && !this.wanted.has(id) && !this.failures.has(id)) {
      this.wanted.add(id);
      this.model.send({ type: "detail", id });
    }
    return known;
  }

  failure(id: string): string {
    return this.failures.get(id) ?? "";
  }

  /** How a variant came to be written; undefined while it is fetched, a text where it can't be had. */
  prompt(id: string): Prompt | string | undefined {
    const known = this.prompts.get(id);
    if (known === undefined && id && !this.wanted.has(`prompt ${id}`)) {
      this.wanted.add(`prompt ${id}`);
      this.model.send({ type: "prompt", id });
    }
    return known;
  }

  private ask(): void {
    if (this.asked) return;
    this.asked = true;
    this.model.send({ type: "snapshot", view: this.view });
  }

  /** Python's counter arrives even where a burst of messages was dropped at its end. */
  private catchUp(seq: number): void {
    if (seq <= this.seq) return;
    this.asked = false;
    this.ask();
  }

  private receive(message: FromPython, buffers: DataView[]): void {
    switch (message.type) {
      case "packed":
        this.receive({ ...message, type: "snapshot", upserts: unpackRows(message.upserts, buffers), points: unpackPoints(message.points, buffers) }, []);
        return;
      case "snapshot":
        if (message.seq < this.seq) return;
        this.asked = false;
        this.rows.clear();
        this.points.length = 0;
        this.tally.clearPoints();
        this.tally.verdicts.clear();
        this.changes.length = 0;
        this.replaced += 1;
        this.renewed += 1;
        this.log.length = 0;
        this.seen.clear();
        this.texts = message.texts;
        this.roof = message.roof;
        this.take(message);
        return;
      case "delta":
        if (this.asked || message.seq <= this.seq) return;
        if (message.seq !== this.seq + 1) {
          this.ask();
          return;
        }
        this.take(message);
        return;
      case "detail":
        this.wanted.delete(message.id);
        if (message.detail) this.details.set(message.id, message.detail);
        else this.failures.set(message.id, message.error);
        this.tell("detail");
        return;
      case "prompt":
        this.wanted.delete(`prompt ${message.id}`);
        this.prompts.set(message.id, message.prompt ?? message.error);
        this.tell("detail");
        return;
      case "writing":
        if (!this.writings.take(message.answers)) this.model.send({ type: "writing" });
        this.tell("writing");
        return;
      default:
        this.privates.get(message.request)?.(message, buffers);
    }
  }

  private take(message: Extract<FromPython, { type: "snapshot" | "delta" }>): void {
    this.seq = message.seq;
    this.header = message.header;
    for (const row of message.upserts) {
      this.tally.row(this.rows.get(row.id), row);
      this.rows.set(row.id, row);
      this.details.delete(row.id);
      this.failures.delete(row.id);
    }
    for (const point of message.points) this.addPoint(point);
    const last = this.log.at(-1)?.seq ?? 0;
    for (const line of message.log) if (line.seq > last) this.log.push(line);
    if (this.log.length > LOG_LINES) this.log.splice(0, this.log.length - LOG_LINES);
    if (message.upserts.length) {
      this.version += 1;
      // A snapshot's rows are all of them: who looks after it begins anew.
      if (message.type === "delta") this.changes.push({ version: this.version, ids: message.upserts.map((row) => row.id) });
      if (this.changes.length > REMEMBERED) this.changes.shift();
    }
    this.tell("run");
    const lead = this.header.best?.id ?? (message.type === "snapshot" ? nearest(message.upserts) : message.upserts.at(-1)?.id) ?? "";
    if (this.following && lead && lead !== this.selected) {
      this.selected = lead;
      this.tell("selected");
    }
    if (message.upserts.some((row) => row.id === this.selected)) this.tell("detail");
  }

  private addPoint(point: Point): void {
    const at = this.seen.get(point.evaluation);
    if (at === undefined) {
      this.seen.set(point.evaluation, this.points.length);
      this.tally.point(point, this.points.length, this.rows.get(point.candidate)?.island ?? "");
      this.points.push(point);
      return;
    }
    const before = this.points[at]!;
    if (before.verdict === point.verdict && before.time_us === point.time_us) return;
    this.points[at] = point; // as when an evaluation is judged again: rare, so everything is counted once more
    this.replaced += 1;
    this.tally.clearPoints();
    this.points.forEach((one, place) => this.tally.point(one, place, this.rows.get(one.candidate)?.island ?? ""));
  }

  private tell(topic: Topic): void {
    for (const listener of this.listeners.get(topic) ?? []) listener();
  }
}

/** The variant that is nearest to right, in the table's order; undefined where there is none. */
function nearest(rows: readonly Row[]): string | undefined {
  return arrange(rows, INITIAL)[0]?.row.id;
}

/** Unpacks what `workbench/board/packing.py` packs: many objects of one kind, as columns. */

import type { Json, Packed, Point, Row, Width } from "../../protocol";

type Read = (at: number) => never;

/**
 * The rows. Each is written out as a literal: objects whose fields are set one by one by name become hash tables in the browser, which
 * take three times the memory and are slow to read.
 */
export function unpackRows(packed: Packed, buffers: readonly DataView[]): Row[] {
  const read = readers(packed, buffers);
  const [id, backend, kind, verdict, reason, evaluations] = [read("id"), read("backend"), read("kind"), read("verdict"), read("reason"), read("evaluations")];
  const [judged, time, low, high, modelled] = [read("judged_by"), read("time_us"), read("low_us"), read("high_us"), read("modelled")];
  const [speedup, against, diagnosis, island, proposer] = [read("speedup"), read("against"), read("diagnosis"), read("island"), read("proposer")];
  const [plan, parents, parameters, labels] = [read("plan"), read("parents"), read("parameters"), read("labels")];
  const [order, accepted] = [read("order"), read("accepted")];
  return all(packed, (at) => ({
    id: id(at), backend: backend(at), kind: kind(at), verdict: verdict(at), reason: reason(at), evaluations: evaluations(at),
    judged_by: judged(at), time_us: time(at), low_us: low(at), high_us: high(at), modelled: modelled(at), speedup: speedup(at),
    against: against(at), diagnosis: diagnosis(at), island: island(at), proposer: proposer(at), plan: plan(at), parents: parents(at),
    parameters: parameters(at), labels: labels(at), order: order(at), accepted: accepted(at),
  }));
}

/** The chart's points. */
export function unpackPoints(packed: Packed, buffers: readonly DataView[]): Point[] {
  const read = readers(packed, buffers);
  const [n, evaluation, candidate] = [read("n"), read("evaluation"), read("candidate")];
  const [verdict, time, modelled] = [read("verdict"), read("time_us"), read("modelled")];
  return all(packed, (at) => ({
    n: n(at), evaluation: evaluation(at), candidate: candidate(at), verdict: verdict(at), time_us: time(at), modelled: modelled(at),
  }));
}

function all<T>(packed: Packed, make: (at: number) => T): T[] {
  const out: T[] = [];
  for (let at = 0; at < packed.count; at += 1) out.push(make(at));
  return out;
}

/** What reads the value of a field at a place. The fields' types are those of the objects that were packed. */
function readers(packed: Packed, buffers: readonly DataView[]): (field: string) => Read {
  return (field) => {
    const column = packed.fields[field];
    return (column ? reader(column, buffers) : () => null) as Read;
  };
}

function reader(column: Packed["fields"][string], buffers: readonly DataView[]): (at: number) => Json {
  if (column.kind === "same") return () => column.value;
  if (column.kind === "plain") return (at) => column.values[at]!;
  const bytes = buffers[column.buffer];
  if (!bytes) throw new Error("a packed message came without its bytes");
  if (column.kind === "numbers") {
    return (at) => {
      const value = bytes.getFloat64(8 * at, true);
      return Number.isNaN(value) ? null : value;
    };
  }
  if (column.kind === "texts") {
    const values = linesOf(bytes);
    return (at) => values[at]!;
  }
  if (column.kind === "lists") {
    const values = linesOf(bytes);
    return (at) => (values[at] ? values[at].split("\t") : []);
  }
  const numbers = whole(bytes, column.bytes);
  if (column.kind === "whole") return numbers;
  const { values } = column;
  return (at) => values[numbers(at)]!;
}

function linesOf(bytes: DataView): string[] {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).split("\n");
}

function whole(bytes: DataView, width: Width): (at: number) => number {
  if (width === 1) return (at) => bytes.getUint8(at);
  return width === 2 ? (at) => bytes.getUint16(2 * at, true) : (at) => bytes.getUint32(4 * at, true);
}

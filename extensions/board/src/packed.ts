/** Unpacks what `workbench/board/packing.py` packs: many objects of one kind, as columns. */

import type { Json, Packed } from "../../protocol";

/** The objects. `buffers` are those beside the message; a column names its own by number. */
export function unpack<T>(packed: Packed, buffers: readonly DataView[]): T[] {
  const columns = Object.entries(packed.fields).map(([name, column]) => [name, reader(column, buffers)] as const);
  const out: T[] = [];
  for (let at = 0; at < packed.count; at += 1) {
    const made: Record<string, Json> = {};
    for (const [name, read] of columns) made[name] = read(at);
    out.push(made as T);
  }
  return out;
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
  return (at) => column.values[bytes.getUint32(4 * at, true)]!;
}

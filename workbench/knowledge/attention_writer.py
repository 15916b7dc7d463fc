"""Writes attention as one kernel: scores, their softmax and the product with the values, block of keys by block of keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.emit import LOG2E, Expr
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.matmul_writer import precision_argument, tensors_of
from workbench.knowledge.module import Kernel, kernel_name
from workbench.knowledge.program import Program, Ref, Value
from workbench.knowledge.scope import Names, Needs, Scope
from workbench.task import Task

TAKEN = {
    "rows", "keys", "keys_down", "cols", "depth", "depth_down", "batch", "tile", "start", "stop", "query", "key", "value", "score", "peak",
    "total", "acc", "new_peak", "base", "power", "shrink", "M", "N", "D", "E", "B", "BLOCK_M", "BLOCK_N", "WIDE_D", "WIDE_E", "mask",
}  # fmt: skip


@dataclass(frozen=True)
class Attention:
    """The two products of a program and the softmax between them.

    Attributes:
        first, second: the products; `score`: what the softmax is taken of.
        query, key, value: the loads that are multiplied.
    """

    first: Value
    second: Value
    score: Value
    query: Value
    key: Value
    value: Value
    batch: Dim
    rows: Dim
    keys: Dim
    depth: Dim
    columns: Dim
    dtype: str


def find_attention(program: Program) -> Attention:
    """Softmax of a product, multiplied by values.

    Raises:
        UnsupportedError: the program is something else.
    """
    dots = program.of_kind("dot")
    if len(dots) != 2 or program.of_kind("scan", "gather", "window", "conv") or len(program.of_kind("reduce")) != 2:
        raise UnsupportedError("it is not a softmax between two products")
    first, second = dots
    weight = program[second.refs[0]]
    score = _softmax_of(program, weight, second.over)
    query, key = (program[ref] for ref in first.refs)
    value = program[second.refs[1]]
    if score is None or any(load.kind != "load" for load in (query, key, value)):
        raise UnsupportedError("it is not a softmax between two products of arguments")
    if any(found.kind in ("reduce", "dot") and found.id != first.id for found in program.needed([score.id])):
        raise UnsupportedError("scores that need more than one product")
    dtypes = {access.input: access.dtype for access in program.accesses}
    dtype = dtypes[query.input]
    if {dtypes[key.input], dtypes[value.input]} != {dtype} or dtype not in ("float16", "bfloat16", "float32"):
        raise UnsupportedError("queries, keys and values of different dtypes")
    keys, depth = second.over, first.over
    batch = tuple(atom for atom in query.atoms if atom in key.deps and atom not in depth)
    rows = tuple(atom for atom in query.atoms if atom not in depth and atom not in batch)
    columns = tuple(atom for atom in value.atoms if atom not in keys and atom not in batch)
    known = {*batch, *rows, *columns}
    if not rows or not keys or not columns or any(set(output.atoms) != known for output in program.outputs):
        raise UnsupportedError("a result of another shape than the second product's")
    tensors = tensors_of(program)
    if any(len(group_atoms(axis, tensors)) != 1 for axis in (keys, depth, columns)):
        raise UnsupportedError("a dimension of attention that is no single stretch of memory")
    return Attention(first, second, score, query, key, value, batch, rows, keys, depth, columns, dtype)


def _softmax_of(program: Program, weight: Value, over: Dim) -> Value | None:
    """What `weight` is the softmax of, along `over`."""
    if weight.kind != "map" or weight.op not in ("mul", "div") or len(weight.refs) != 2:
        return None
    power, scale = (program[ref] for ref in weight.refs)
    if weight.op == "mul":
        if scale.op != "div" or scale.args[0] != 1.0 or not isinstance(scale.args[1], Ref):
            return None
        scale = program[scale.refs[0]]
    if power.op != "exp" or scale.kind != "reduce" or (scale.op, scale.refs, scale.over) != ("sum", (power.id,), over):
        return None
    shifted = program[power.refs[0]]
    if shifted.op != "sub" or len(shifted.refs) != 2:
        return None
    score, peak = (program[ref] for ref in shifted.refs)
    return score if peak.kind == "reduce" and (peak.op, peak.refs, peak.over) == ("max", (score.id,), over) else None


class AttentionWriter:
    """Writes the kernel.

    Attributes:
        outputs: the launcher's names of the results.
    """

    def __init__(
        self, task: Task, program: Program, found: Attention, choices: Mapping[str, Any], launcher: Launcher, needs: Needs
    ) -> None:  # fmt: skip
        self.task, self.program, self.found, self.choices, self.launcher, self.needs = task, program, found, choices, launcher, needs
        tensors = [*tensors_of(program), *(value.over for value in program.of_kind("index"))]
        batch = [LoopAxis("batch", "B", group_atoms(found.batch, tensors))] if found.batch else []
        self.outer = [*batch, LoopAxis("rows", "M", group_atoms(found.rows, tensors))]
        self.tensors = tensors
        self.batched = bool(batch)
        self.wide = ".to(tl.int64)" if max(program.elements(value.deps) for value in program.of_kind("load")) >= 2**31 else ""
        self.outputs = [launcher.allocate(output, "out") for output in program.outputs]

    def write(self) -> Kernel:
        """The kernel, with its launch in the launcher."""
        found, size = self.found, self.launcher.size
        across, down = LoopAxis("keys", "N", (found.keys,)), LoopAxis("keys_down", "N", (found.keys,))
        cols = LoopAxis("cols", "E", (found.columns,))
        depth, depth_down = LoopAxis("depth", "D", (found.depth,)), LoopAxis("depth_down", "D", (found.depth,))
        queries = Layout((*self.outer, depth)).offset(found.query.atoms)
        keys = Layout((*self.outer, across, depth_down)).offset(found.key.atoms)
        values = Layout((*self.outer, down, cols)).offset(found.value.atoms)
        narrow = {found.depth: "depth", found.columns: "cols"}
        inside = {axis: "" if self._is_whole(axis) else f"({name} < {'D' if name == 'depth' else 'E'})" for axis, name in narrow.items()}
        precision = precision_argument(self.choices.get("precision"))
        score = self._scope(Layout((*self.outer, across)), found.first.id, "score")
        score.compute([found.score.id])
        final = self._scope(Layout((*self.outer, cols)), found.second.id, "acc")
        final.compute([output.value.id for output in self.program.outputs if isinstance(output.value, Ref)])
        dtype = {"float16": ".to(tl.float16)", "bfloat16": ".to(tl.bfloat16)"}.get(found.dtype, "")
        outside = inside[found.depth].replace("depth", "depth_down")
        kernel = Kernel(
            kernel_name(self.task),
            "Each program takes BLOCK_M queries and walks the keys: scores live in registers, and what was summed is rescaled when a "
            "larger score appears.",
            "",
        )
        kernel.body = [
            *self._position(),
            "depth = tl.arange(0, WIDE_D)[None, :]",
            "depth_down = tl.arange(0, WIDE_D)[:, None]",
            "cols = tl.arange(0, WIDE_E)[None, :]",
            f"query = tl.load({found.query.input}_ptr + {queries}, mask={_all('rows < M', inside[found.depth])}, other=0.0)",
            'peak = tl.full([BLOCK_M, 1], -float("inf"), tl.float32)',
            "total = tl.zeros([BLOCK_M, 1], tl.float32)",
            "acc = tl.zeros([BLOCK_M, WIDE_E], tl.float32)",
            f"for start in tl.range(0, {self._stop()}, BLOCK_N):",
            "    keys = start + tl.arange(0, BLOCK_N)[None, :]",
            "    keys_down = start + tl.arange(0, BLOCK_N)[:, None]",
            f"    key = tl.load({found.key.input}_ptr + {keys}, mask={_all('keys < N', outside)}, other=0.0)",
            f"    score = tl.dot(query, key{precision})",
            *(f"    {line}" for line in score.lines),
            f'    score = tl.where(keys < N, {score.operand(Ref(found.score.id)).text}, -float("inf"))',
            "    new_peak = tl.maximum(peak, tl.max(score, axis=1, keep_dims=True))",
            "    # Where nothing was seen yet, minus infinity less itself would be NaN.",
            '    base = tl.where(new_peak == -float("inf"), 0.0, new_peak)',
            f"    power = tl.exp2((score - base) * {LOG2E})",
            f"    shrink = tl.exp2((peak - base) * {LOG2E})",
            "    total = total * shrink + tl.sum(power, axis=1, keep_dims=True)",
            f"    value = tl.load({found.value.input}_ptr + {values}, mask={_all('keys_down < N', inside[found.columns])}, other=0.0)",
            f"    acc = tl.dot(power{dtype}, value, acc * shrink{precision})",
            "    peak = new_peak",
            "acc = acc / total",
            f"mask = {_all('rows < M', inside[found.columns])}",
            *final.lines,
        ]
        for output, name in zip(self.program.outputs, self.outputs, strict=True):
            text = final.operand(output.value, output.dtype).text
            offset = Layout((*self.outer, cols)).offset(output.atoms)
            kernel.body.append(f"tl.store({name}_ptr + {offset}, {text}, mask=mask)")
        kernel.grid = f"(triton.cdiv({size(found.rows)}, BLOCK_M){', ' + size(found.batch) if self.batched else ''},)".replace(",,", ",")
        self._finish(kernel)
        self.launcher.lines.append("BLOCK_M, BLOCK_N = BLOCKS")
        if not self.wide:
            names = (found.query.input, found.key.input, found.value.input, self.outputs[0])
            self.launcher.lines += [
                f"if max({', '.join(f'{name}.numel()' for name in names)}) >= 2**31:",
                f'    raise ValueError("{self.task.entry}: written for fewer than 2**31 elements")',
            ]
        self.launcher.lines += kernel.launch()
        return kernel

    def _position(self) -> list[str]:
        lines = [
            # Where later queries see more keys, the longest programs start first.
            "tile = tl.num_programs(0) - 1 - tl.program_id(0)",
            f"rows = (tile{self.wide} * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]",
        ]
        if self.batched:
            lines.append(f"batch = tl.program_id(1){self.wide}")
        found = self.found
        axes = [("keys", "N", found.keys), ("depth", "D", found.depth), ("cols", "E", found.columns)]
        layout = Layout((*self.outer, *(LoopAxis(name, size, (atoms,)) for name, size, atoms in axes)))
        return [*lines, *(line for axis in self.outer for line in layout.part_lines(axis, self.tensors))]

    def _stop(self) -> str:
        """Where keys behind a query are masked away, their blocks are not walked."""
        program, found = self.program, self.found
        for value in program.needed([found.score.id]):
            hit = program[value.args[0].id] if value.op == "where" and isinstance(value.args[0], Ref) else None
            if hit is None or hit.op != "le" or value.args[2] != -float("inf") or not isinstance(hit.args[1], (int, float)):
                continue
            apart = program[hit.refs[0]]
            if apart.op == "sub" and [program[ref].over for ref in apart.refs] == [found.keys, found.rows]:
                return f"tl.minimum(N, (tile + 1) * BLOCK_M + {int(hit.args[1])})"
        return "N"

    def _is_whole(self, axis: Dim) -> bool:
        size = self.program.elements(axis)
        return size >= 16 and size & (size - 1) == 0

    def _scope(self, layout: Layout, known: int, name: str) -> Scope:
        found = self.found
        indexes: dict[Dim, str] = {found.keys: "keys", found.columns: "cols"}
        for axis in self.outer:
            indexes[axis.atoms] = axis.name
            indexes |= {group: axis.coordinate(place) for place, group in enumerate(axis.groups)}
        limits = (("rows < M", found.rows), ("keys < N", found.keys), ("cols < E", found.columns))

        def mask(deps: frozenset[int]) -> str:
            return _all(*(text for text, atoms in limits if deps & set(atoms)))

        taken = TAKEN | {value.input for value in self.program.of_kind("scalar")}
        taken |= {axis.coordinate(place) for axis in self.outer for place in range(len(axis.groups))}
        return Scope(
            self.program, layout, Names(taken), self.needs, mask=mask, pads={}, env={known: Expr(name)}, indexes=indexes,
            sizes=lambda atoms: "N" if set(atoms) == set(found.keys) else self.launcher.size(atoms),
        )  # fmt: skip

    def _finish(self, kernel: Kernel) -> None:
        text, size, found = "\n".join(kernel.body), self.launcher.size, self.found

        def used(name: str) -> bool:
            return re.search(rf"\b{name}\b", text) is not None

        pointers = dict.fromkeys([*(value.input for value in self.program.of_kind("load")), *self.outputs])
        kernel.parameters = [(f"{name}_ptr", name) for name in pointers if used(f"{name}_ptr")]
        kernel.parameters += [(value.input, value.input) for value in self.program.of_kind("scalar") if used(value.input)]
        sizes: Sequence[tuple[str, Dim]] = (("B", found.batch), ("M", found.rows), ("N", found.keys))
        kernel.parameters += [(name, size(atoms)) for name, atoms in sizes if used(name)]
        for walked in self.outer:
            if walked.is_split:
                parts = [(walked.group_size(place), size(group)) for place, group in enumerate(walked.groups)]
                kernel.constants += [part for part in parts if used(part[0])]
        for name, atoms in (("D", found.depth), ("E", found.columns)):
            kernel.constants += [(name, size(atoms))] if used(name) else []
            kernel.constants.append((f"WIDE_{name}", f"max(16, triton.next_power_of_2({size(atoms)}))"))
        kernel.constants += [("BLOCK_M", "BLOCK_M"), ("BLOCK_N", "BLOCK_N")]
        kernel.options = {"num_warps": "NUM_WARPS", "num_stages": "NUM_STAGES"}


def _all(*conditions: str) -> str:
    present = [condition for condition in conditions if condition]
    if len(present) < 2:
        return "".join(present)
    return " & ".join(condition if condition.startswith("(") else f"({condition})" for condition in present)

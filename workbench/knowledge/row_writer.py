"""Writes a row program's kernels: whole rows in registers, rows in a loop of blocks, or rows split over several programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.emit import TRITON_TYPES, Expr
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis
from workbench.knowledge.module import Kernel
from workbench.knowledge.program import Output, Ref, Value
from workbench.knowledge.row_plan import RowPlan, Track
from workbench.knowledge.row_state import State, Tile, make_states, masked_operand, reduction
from workbench.knowledge.scope import Names, Needs, Scope
from workbench.target import get_target
from workbench.task import ITEM_BYTES

LONGEST_BLOCK = 8192
"""Rows of a multiple of this many elements are cut evenly by every block size that is tried: there the compiler can drop the masks."""

ON_GPU = '{device}.type == "cuda"'


class RowWriter:
    """Writes the kernels of one stage.

    Attributes:
        choices: see `experts.row_expert`: passes, rows, grid, cache, online, statistics.
        names_of: where each result or handed-on value goes: the launcher's variable.
        literal: numbers in place of names of TUNE, for kernels too small to be worth tuning.
    """

    def __init__(
        self, plan: RowPlan, choices: Mapping[str, Any], launcher: Launcher, needs: Needs, names_of: Mapping[Output, str], name: str,
        big: bool = False, literal: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.choices, self.launcher, self.needs, self.names_of, self.name = plan, choices, launcher, needs, names_of, name
        self.big, self.literal = big, literal or {}
        self.several = choices["rows"] == "several" and bool(plan.kept)
        self._running: list[str] = []
        self.counts: dict[frozenset[int], str] = {}
        """Names of numbers of elements that are neither those of a row nor of all rows: a mean over what an earlier stage has reduced."""
        self.tile = Tile("ROWS" if self.several else "")
        self.row = "rows" if self.several else "row"
        axes = [LoopAxis(self.row, "M", plan.kept_groups)] if plan.kept else []
        self.columns = LoopAxis("cols", "N", plan.reduced_groups)
        self.layout = Layout((*axes, self.columns))
        self.row_axis = axes[0] if axes else None
        self.full = {value.id for value in plan.program.of_kind("load") if plan.is_full(value)}

    # -- the strategies -----------------------------------------------------------------------------------------------------------

    def whole_rows(self) -> list[Kernel]:
        """One pass: a program holds whole rows in registers, so that each element is read once."""
        scope = self._scope(mask="mask")
        doc = "Each program holds ROWS whole rows in registers." if self.several else "Each program holds one whole row in registers."
        kernel = Kernel(self.name, doc, grid="")
        columns = [f"cols = {self.tile.arange()}", *self.layout.part_lines(self.columns, self.plan.tensors)]
        inside = "(cols < N) | EVEN" if self.plan.length & (self.plan.length - 1) == 0 else "cols < N"
        row_mask = [f"mask = (rows < M) & ({inside})"] if self.several else []
        column_mask = [] if self.several else [f"mask = {inside}"]
        if self.choices["grid"] == "persistent":
            hoisted, narrow = self._hoisted(scope)
            inner = self._current = scope.inner(names=scope.names, lines=[])
            for value, name in narrow:
                inner.env[value.id] = inner.assign(value.input, f"{name}.to({TRITON_TYPES[value.dtype]})")
            self._straight(inner)
            head, loop = self._row_loop()
            kernel.body = [*columns, *column_mask, *hoisted, head, *_indent([*loop, *self._row_parts(), *row_mask, *inner.lines])]
            kernel.grid = self._persistent_grid()
            kernel.doc += " A fixed number of programs walks all rows; the next rows are fetched while the current ones are computed."
            self._count_processors()
        else:
            self._straight(scope)
            kernel.body = [*self._row_start(), *self._row_parts(), *columns, *column_mask, *row_mask, *scope.lines]
            kernel.grid = self._grid()
        width = f"triton.next_power_of_2({self._length()})"
        self._finish(kernel, {"BLOCK": width, "EVEN": f"{self._length()} == {width}"})
        return [kernel]

    def looped(self) -> list[Kernel]:
        """Rows of any length: passes over blocks of the row, the later ones from the cache."""
        scope = self._scope(mask="mask")
        body = [*self._row_start(), *self._row_parts()]
        passes = self._passes()
        self._row_values(scope)
        reads = len(passes) + bool(self.plan.full_outputs)
        for number, tracks in enumerate(passes):
            deep = self.plan.deep(tracks, self.choices)
            states = make_states(self.plan, tracks, self.tile, scope, self.choices.get("online") == "lanes", deep)
            self._reduce_pass(scope, states, "0", "DEPTH * BLOCK" if deep else "BLOCK", self._policy(number, reads), deep)
            if number == 0:
                # The positions were loaded before the loop, and the picked elements lie in the cache by now.
                self._row_values(scope, kinds=("load", "gather"))
            for state in states:
                state.combine(scope, self.tile)
                state.publish(scope)
        self._store_rows(scope)
        if self.plan.full_outputs:
            self._apply_pass(scope, "0", "BLOCK", self._policy(reads - 1, reads))
        kernel = Kernel(
            self.name, "Each program walks its rows block by block." if self.several else "Each program walks one row block by block.", ""
        )
        kernel.doc += f" The row is read {_times(reads)}." if reads > 1 else " The row is read once."
        if any(self.plan.deep(tracks, self.choices) for tracks in passes):
            kernel.doc += " Each thread keeps the maximum and the sum of what it has loaded, and all are combined once, at the end."
        kernel.body = [*body, *scope.lines]
        kernel.grid = self._grid()
        self._finish(kernel, self._block_sizes())
        return [kernel]

    def split(self) -> list[Kernel]:
        """Few long rows: SPLIT programs share each row, and a second launch combines what they found."""
        passes = self._passes()
        if len(passes) != 1 or self.plan.program.of_kind("scan"):
            raise UnsupportedError("reductions that depend on each other can't be split")
        rows = self._rows()
        first = self._scope(mask="mask")
        self._row_values(first, passes[0])
        deep = self.plan.deep(passes[0], self.choices)
        states = make_states(self.plan, passes[0], self.tile, first, self.choices.get("online") == "lanes", deep)
        reads = 1 + bool(self.plan.full_outputs)
        block = "DEPTH * BLOCK" if deep else "BLOCK"
        self._reduce_pass(first, states, f"part * {block}", f"SPLIT * {block}", self._policy(0, reads), deep)
        parts: list[tuple[str, str]] = []
        for state in states:
            state.combine(first, self.tile)
            for variable, dtype in zip(state.variables, state.kept_dtypes(), strict=True):
                memory = self.launcher.temporary(f"partial_{variable}", [rows, self._tuned("SPLIT")], dtype)
                parts.append((variable, memory))
                mask = ", mask=rows < M" if self.several else ""
                first.lines.append(f"tl.store({memory}_ptr + {self._row_at('SPLIT')} + part, {variable}{mask})")
        one = Kernel(f"{self.name.removesuffix('_kernel')}_partial_kernel", "Each program reduces every SPLIT-th block of its rows.", "")
        one.body = [*self._row_start(), "part = tl.program_id(1)", *self._row_parts(), *first.lines]
        one.grid = f"({self._row_programs()}, {self._tuned('SPLIT')})"
        width = {"SPLIT": self._tuned("SPLIT"), **self._block_sizes()}
        self._finish(one, width, extra=[memory for _, memory in parts])

        second = self._scope(mask="mask")
        again = make_states(self.plan, passes[0], self.tile, second, self.choices.get("online") == "lanes")
        partial = self.tile.with_width("SPLIT")
        lines = [*self._row_start(), *self._row_parts()]
        place = second.names.new("parts")
        second.lines.append(f"{place} = {partial.arange()}")
        memories = iter(memory for _, memory in parts)
        for state in again:
            for variable, start in zip(state.variables, state.starts, strict=True):
                mask = f", mask=rows < M, other={start}" if self.several else ""
                second.lines.append(f"{variable} = tl.load({next(memories)}_ptr + {self._row_at('SPLIT')} + {place}{mask})")
            state.combine(second, partial)
            state.publish(second)
        self._row_values(second)
        if self.plan.full_outputs:
            self._apply_pass(second, "part * BLOCK", "SPLIT * BLOCK", self._policy(1, 2))
            two = Kernel(
                f"{self.name.removesuffix('_kernel')}_apply_kernel",
                "Each program combines the parts of its rows, then writes every SPLIT-th block.",
                "",
            )
            # The last parts were read last, so that the cache still holds them: begin there.
            lines.append("part = SPLIT - 1 - tl.program_id(1)")
            two.grid = f"({self._row_programs()}, {self._tuned('SPLIT')})"
            self._store_rows(second, only="part == 0")
        else:
            self._store_rows(second)
            two = Kernel(f"{self.name.removesuffix('_kernel')}_combine_kernel", "Each program combines the parts of its rows.", "")
            two.grid = f"({self._row_programs()},)"
            width = {"SPLIT": width["SPLIT"]}
        two.body = [*lines, *second.lines]
        self._finish(two, width, extra=[memory for _, memory in parts])
        return [one, two]

    # -- stretches of code --------------------------------------------------------------------------------------------------------

    def _straight(self, scope: Scope) -> None:
        """Everything in order, for whole rows in registers."""
        scope.compute([output.value.id for output in self.plan.program.outputs if isinstance(output.value, Ref)])
        for output in self.plan.program.outputs:
            self._store(scope, output)

    def _hoisted(self, scope: Scope) -> tuple[list[str], list[tuple[Value, str]]]:
        """Loads that every row shares, such as weights: once a program, not once a row. Narrow ones are held as they are, and widened for
        each row: held wide they would take twice the registers. Returns the lines, and the names of the narrow ones.
        """
        loads = self.plan.program.of_kind("load")
        shared = [value for value in loads if value.deps and value.deps <= set(self.plan.reduced)]
        narrow = [value for value in shared if value.dtype == "float32" and self._item_bytes(value) < 4 and not value.before]
        outer = scope.inner(names=scope.names, lines=[], mask=lambda deps: ("cols < N" if self.several else "mask") if deps else "")
        held = []
        for value in narrow:
            text = outer.load(value, self.layout.offset(value.atoms)).removesuffix(f".to({TRITON_TYPES[value.dtype]})")
            held.append((value, outer.assign(f"{value.input}_held", text).text))
        outer.compute([value.id for value in loads if not value.deps or (value in shared and value not in narrow)], name_all=True)
        scope.env.update(outer.env)
        return outer.lines, held

    def _item_bytes(self, value: Value) -> int:
        return ITEM_BYTES.get(self.launcher.dtypes.get(value.input, value.dtype), 4)

    def _row_values(self, scope: Scope, tracks: Sequence[Track] | None = None, kinds: Sequence[str] = ("load",)) -> None:
        """Loads of one element a row, before any loop over columns; with gathers, after it."""
        program = self.plan.program
        wanted = (
            [track.source for track in tracks] if tracks is not None else [o.value.id for o in program.outputs if isinstance(o.value, Ref)]
        )
        needed = program.needed(wanted)
        scope.compute([value.id for value in needed if value.kind in kinds and not self.plan.along_row(value)], name_all=True)

    def _reduce_pass(self, scope: Scope, states: Sequence[State], start: str, step: str, policy: str, deep: bool) -> None:
        for state in states:
            scope.lines += state.start
        known = self._known_rows(scope, [state.track.source for state in states])
        scope.compute(known, name_all=True)
        inner = self._block_scope(scope, policy)
        inner.compute([state.track.source for state in states], name_all=True)
        for state in states:
            state.update(inner, self._column_mask())
        scope.lines += self._block_loop(start, step, inner.lines, deep)

    def _apply_pass(self, scope: Scope, start: str, step: str, policy: str) -> None:
        outputs = [output for output in self.plan.full_outputs if isinstance(output.value, Ref)]
        scope.compute(self._known_rows(scope, [output.value.id for output in outputs]), name_all=True)
        inner = self._block_scope(scope, policy)
        inner.compute([output.value.id for output in outputs])
        for output in self.plan.full_outputs:
            self._store(inner, output)
        scope.lines += [*self._running, *self._block_loop(start, step, inner.lines)]

    def _known_rows(self, scope: Scope, targets: Sequence[int]) -> list[int]:
        """Values of one element a row that a loop over columns needs: they are computed before it."""
        needed = self.plan.program.needed(targets, stop=set(scope.env))
        inside = {value.id for value in needed if self.plan.along_row(value)}
        frontier = {ref for value in needed if value.id in inside for ref in value.refs} | set(targets)
        wanted = frontier - inside - set(scope.env)
        return [value.id for value in needed if value.id in wanted and value.kind not in ("size", "scalar", "index")]

    def _block_loop(self, start: str, step: str, lines: Sequence[str], deep: bool = False) -> list[str]:
        head = [f"cols = start + {self.tile.arange()}"]
        scans = {value.op.endswith("_from_end") for value in self.plan.program.of_kind("scan")}
        if len(scans) == 2:
            raise UnsupportedError("a scan from the start beside one from the end, in blocks")
        if True in scans:
            head.insert(0, "start = (N - 1) // BLOCK * BLOCK - behind")
        if deep:
            head = [
                "lanes = tl.arange(0, BLOCK // VECTOR)[None, :, None] * VECTOR + tl.arange(0, VECTOR)[None, None, :]",
                "cols = start + tl.arange(0, DEPTH)[:, None, None] * BLOCK + lanes",
            ]
        inside = "(cols < N) | EVEN" if self.plan.length % LONGEST_BLOCK == 0 and not deep else "cols < N"
        head.append(f"mask = (rows < M) & ({inside})" if self.several else f"mask = {inside}")
        head += self.layout.part_lines(self.columns, self.plan.tensors)
        stages = ", num_stages=NUM_STAGES" if self.choices.get("prefetch") == "pipelined" else ""
        variable = "behind" if True in scans else "start"
        return [f"for {variable} in tl.range({start}, N, {step}{stages}):", *_indent([*head, *lines])]

    def _row_loop(self) -> tuple[str, list[str]]:
        if not self.several:
            if self.big:
                return "for index in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=NUM_STAGES):", [
                    "row = index.to(tl.int64)"
                ]
            return "for row in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=NUM_STAGES):", []
        first = "first.to(tl.int64)" if self.big else "first"
        head = "for first in tl.range(tl.program_id(0) * ROWS, M, tl.num_programs(0) * ROWS, num_stages=NUM_STAGES):"
        return head, [f"rows = {first} + tl.arange(0, ROWS)[:, None]"]

    def _row_start(self) -> list[str]:
        if self.row_axis is None:
            return []
        index = "tl.program_id(0).to(tl.int64)" if self.big else "tl.program_id(0)"
        return [f"rows = {index} * ROWS + tl.arange(0, ROWS)[:, None]"] if self.several else [f"row = {index}"]

    def _row_parts(self) -> list[str]:
        return list(self.layout.part_lines(self.row_axis, self.plan.tensors)) if self.row_axis else []

    def _row_at(self, width: str) -> str:
        return f"{self.row} * {width}" if self.row_axis else "0"

    def _store(self, scope: Scope, output: Output, only: str = "") -> None:
        name = self.names_of[output]
        text = scope.operand(output.value, output.dtype).text
        deps = frozenset(output.atoms)
        masks = [mask for mask in (scope.mask(deps), only) if mask]
        mask = f", mask={masks[0]}" if len(masks) == 1 else f", mask=({masks[0]}) & ({masks[1]})" if masks else ""
        offset = self.layout.offset(output.atoms)
        scope.lines.append(f"tl.store({name}_ptr{f' + {offset}' if offset != '0' else ''}, {text}{mask})")

    def _store_rows(self, scope: Scope, only: str = "") -> None:
        outputs = self.plan.row_outputs
        scope.compute([output.value.id for output in outputs if isinstance(output.value, Ref)])
        for output in outputs:
            self._store(scope, output, only)

    # -- settings of scopes -------------------------------------------------------------------------------------------------------

    def _passes(self) -> tuple[tuple[Track, ...], ...]:
        return self.plan.tracks(self.choices.get("online", "off") != "off", self.choices.get("statistics", "") == "welford")

    def _policy(self, number: int, reads: int) -> str:
        """Cache hint of pass `number`: what is read again should stay, what is not may go."""
        if self.choices["cache"] == "default":
            return ""
        return "evict_first" if number == reads - 1 else "evict_last"

    def _column_mask(self) -> str:
        return "mask"

    def _scope(self, mask: str) -> Scope:
        taken = {"row", "rows", "cols", "mask", "start", "behind", "lanes", "first", "index", "part"}
        taken |= {"M", "N", "BLOCK", "DEPTH", "VECTOR", "EVEN", "ROWS", "SPLIT"}
        taken |= {axis.coordinate(place) for axis in self.layout.axes for place in range(len(axis.groups))}
        taken |= {axis.group_size(place) for axis in self.layout.axes for place in range(len(axis.groups))}
        taken |= {value.input for value in self.plan.program.of_kind("scalar")}
        single = self.choices["passes"] == "row"

        def mask_of(deps: frozenset[int]) -> str:
            along, across = bool(deps & set(self.plan.reduced)), bool(deps & set(self.plan.kept)) and self.several
            return "mask" if along and (across or not self.several) else "cols < N" if along else "rows < M" if across else ""

        def reduce(value: Value, operand: Expr) -> Expr:
            text = masked_operand(self.plan, self._current, value, "mask")
            if value.kind == "scan":
                return self._scan(value, operand, text)
            return Expr(reduction(value.op, text, self.tile, self._current))

        scope = Scope(
            self.plan.program, self.layout, Names(taken), self.needs, mask=mask_of, pads=self.plan.pads, reduce=reduce,
            eviction=lambda value: self._policy(0, 1) if value.id in self.full and single else "",
            indexes={self.plan.reduced: "cols"}, sizes=self._size, picked=self._picked,
        )  # fmt: skip
        self._current = scope
        return scope

    def _block_scope(self, scope: Scope, policy: str) -> Scope:
        inner = scope.inner(names=scope.names.copy(), lines=[], eviction=lambda value: policy if value.id in self.full else "")
        self._current = inner
        return inner

    def _scan(self, value: Value, operand: Expr, masked: str) -> Expr:
        """A running sum or product within the block, carried on from the blocks before where there are several."""
        axis = "axis=1" if self.several else "axis=0"
        function, sign = ("tl.cumsum", "+") if value.op.startswith("sum") else ("tl.cumprod", "*")
        backwards = ", reverse=True" if value.op.endswith("_from_end") else ""
        if self.choices["passes"] == "row":
            # From the end, what lies behind the row's end comes first: it must not count.
            return Expr(f"{function}({masked if backwards else operand.text}, {axis}{backwards})")
        carry = self._current.names.new("carry")
        start = "0.0" if value.op.startswith("sum") else "1.0"
        dtype = "tl.float64" if value.dtype == "float64" else "tl.float32"
        if not value.dtype.startswith("float"):
            raise UnsupportedError("a running integer sum in blocks")
        self._running.append(f"{carry} = {self.tile.per_row(start, dtype)}")
        block = self._current.assign("block", masked).text
        running = self._current.assign("running", f"{function}({block}, {axis}{backwards}) {sign} {carry}").text
        total = reduction(value.op.removesuffix("_from_end"), block, self.tile, self._current)
        self._current.lines.append(f"{carry} {sign}= {total}")
        return Expr(running)

    def _picked(self, scope: Scope, value: Value, position: str) -> str:
        """The offset of the element at `position` along the row."""
        if self.columns.is_split or not position.isidentifier():
            position = scope.assign("picked", position).text
        axis = replace(self.columns, name=position)
        layout = Layout(tuple(axis if other is self.columns else other for other in self.layout.axes))
        scope.lines += layout.part_lines(axis, [value.atoms])
        return layout.offset(value.atoms)

    def _size(self, atoms: tuple[int, ...]) -> str:
        if set(atoms) == set(self.plan.reduced):
            return "N"
        if set(atoms) == set(self.plan.kept):
            return "M"
        return self.counts.setdefault(frozenset(atoms), f"ELEMENTS_{len(self.counts) + 1}")

    def _block_sizes(self) -> dict[str, str]:
        """The constants of a loop over blocks. A deep block is as wide as one load of 16 bytes of every thread."""
        length = f"triton.next_power_of_2({self._length()})"
        if not any(self.plan.deep(tracks, self.choices) for tracks in self._passes()):
            block = f"min({self._tuned('BLOCK')}, {length})"
            return {"BLOCK": block, "EVEN": f"{self._length()} % {block} == 0"}
        item = max(ITEM_BYTES.get(self.launcher.dtypes.get(self.plan.program[id].input, "float32"), 4) for id in self.full)
        vector = 16 // item
        wide = f"{self._tuned('NUM_WARPS')} * {get_target(self.launcher.task.target).warp_size * vector}"
        block = f"max({vector}, min({wide}, {length}))"
        return {"DEPTH": self._tuned("DEPTH"), "BLOCK": block, "VECTOR": str(vector), "EVEN": f"{self._length()} % {block} == 0"}

    # -- the launch ---------------------------------------------------------------------------------------------------------------

    def _tuned(self, name: str) -> str:
        return str(self.literal.get(name, name))

    def _rows(self) -> str:
        return self.launcher.size(self.plan.kept) if self.plan.kept else "1"

    def _length(self) -> str:
        return self.launcher.size(self.plan.reduced)

    def _row_programs(self) -> str:
        return f"triton.cdiv({self._rows()}, {self._tuned('ROWS')})" if self.several else self._rows()

    def _grid(self) -> str:
        return f"({self._row_programs()},)"

    def _persistent_grid(self) -> str:
        return f"(min({self._row_programs()}, multiprocessors * PROGRAMS),)"

    def _count_processors(self) -> None:
        device = self.launcher.device
        self.launcher.lines += [
            f"on_gpu = {ON_GPU.format(device=device)}",
            f"multiprocessors = torch.cuda.get_device_properties({device}).multi_processor_count if on_gpu else 132",
        ]

    def _finish(self, kernel: Kernel, constants: Mapping[str, str], extra: Sequence[str] = ()) -> None:
        """Parameters that the body turned out to use."""
        text = "\n".join(kernel.body)
        loaded = [value.input for value in self.plan.program.of_kind("load", "gather")]
        pointers = dict.fromkeys([*loaded, *self.names_of.values(), *extra])
        kernel.parameters = [(f"{name}_ptr", name) for name in pointers if _uses(text, f"{name}_ptr")]
        kernel.parameters += [(value.input, value.input) for value in self.plan.program.of_kind("scalar") if _uses(text, value.input)]
        for axis, whole in ((self.row_axis, self._rows), (self.columns, self._length)):
            if axis is None:
                continue
            if _uses(text, axis.size):
                kernel.parameters.append((axis.size, whole()))
            if axis.is_split:
                # Sizes known when the kernel is compiled make divisions cheap.
                for place, group in enumerate(axis.groups):
                    if _uses(text, axis.group_size(place)):
                        kernel.constants.append((axis.group_size(place), self.launcher.size(group)))
        for atoms, name in self.counts.items():
            if _uses(text, name):
                kernel.parameters.append((name, self.launcher.size(sorted(atoms))))
        if self.several:
            kernel.constants.append(("ROWS", self._tuned("ROWS")))
        kernel.constants += [(name, value) for name, value in constants.items() if _uses(text, name)]
        kernel.options["num_warps"] = self._tuned("NUM_WARPS")
        if _uses(text, "NUM_STAGES"):
            kernel.constants.append(("NUM_STAGES", "NUM_STAGES"))


def _uses(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _times(number: int) -> str:
    return {2: "twice", 3: "three times"}.get(number, f"{number} times")

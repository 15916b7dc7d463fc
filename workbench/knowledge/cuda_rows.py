"""Writes a row program as CUDA C++: a block (or a warp) holds a whole row in registers between its read and its write, or walks it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_below import below
from workbench.knowledge.cuda_emit import CExpr, c_constant, c_type
from workbench.knowledge.cuda_module import CudaKernel, pointer
from workbench.knowledge.cuda_refuse import OPS, refuse
from workbench.knowledge.cuda_scope import CudaScope, c_names, indented
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis
from workbench.knowledge.program import Output, Ref, Value
from workbench.knowledge.row_plan import NEUTRAL, RowPlan
from workbench.task import ITEM_BYTES

_DEAR = frozenset(
    {"exp", "exp2", "log", "log2", "log1p", "expm1", "erf", "erfc", "tanh", "sigmoid", "pow", "sin", "cos", "sqrt", "rsqrt", "div"}
)
"""What is kept in registers rather than computed again after a reduction."""


class CudaRowWriter:
    """One kernel of a row program.

    Args:
        held: the row stays in registers; else every pass reads it again.
        several: a block has ROWS rows of one warp each.
        names: what the launcher calls each output.
        literal: numbers in place of tuned names, for a small finishing kernel.
        keeps: dear values that are needed again stay in registers; else they are computed again, so that more blocks fit.

    Attributes:
        walks: blocks stay, and each does row after row.
    """

    walks = False

    def __init__(
        self, plan: RowPlan, launcher: Launcher, names: Mapping[Output, str], name: str, *, held: bool, several: bool,
        literal: Mapping[str, int] | None = None, keeps: bool = True,
    ) -> None:  # fmt: skip
        self._keeps = keeps
        self.plan, self.launcher, self.outputs, self.name = plan, launcher, names, name
        self.held, self.several, self.literal = held, several, literal or {}
        self.columns = LoopAxis("col", "N", plan.reduced_groups)
        self.rows = LoopAxis("row", "M", plan.kept_groups) if plan.kept else None
        self.layout = Layout(tuple(axis for axis in (self.rows, self.columns) if axis is not None))
        refuse(plan)
        program = plan.program
        self.loads = [value for value in program.of_kind("load") if plan.along_row(value)]
        self.level = self._levels()
        taken = ["M", "N", "row", "col", "lane", "k", "e", "base", *names.values(), *(access.input for access in program.accesses)]
        for axis in self.layout.axes:
            taken += [text for place in range(len(axis.groups)) for text in (axis.coordinate(place), axis.group_size(place))]
        self.vars = c_names(taken)
        self.packs = {value.id: self.vars.new(f"{value.input}s") for value in self.loads}
        self.kept: dict[int, str] = {}
        self.scope = CudaScope(program, self.vars, self._row_source)

    @property
    def scans(self) -> bool:
        return bool(self.plan.program.of_kind("scan"))

    def write(self) -> CudaKernel:
        """The kernel, with its launch."""
        kernel = CudaKernel(self.name, self._doc(), self._bounds(), grid=self._grid(), block=self._block())
        kernel.body = self._body()
        self._finish(kernel)
        return kernel

    def _bounds(self) -> str:
        return "LANES * ROWS" if self.several else "LANES, BLOCKS" if self.held else "LANES"

    def _body(self) -> list[str]:
        if self.several:
            return [*self._start(), "if (row < M) {  // else a whole warp has nothing to do", *indented(self._work()), "}"]
        return [*self._start(), *self._work()]

    def _work(self) -> list[str]:
        """What is done with one row."""
        body = self._early("load")
        last = max(self.level.values(), default=0)
        program = self.plan.program
        if self.held:
            body += self._fetch_row() + self._early("gather")
            self._choose_kept()
        for level in range(last + 1):
            reduces = [value for value in program.of_kind("reduce") if self.level[value.id] == level + 1]
            outputs = [output for output in self.plan.full_outputs if self._output_level(output) == level]
            if reduces or outputs or any(self.level[id] == level for id in self.kept):
                body += self._again() if level else []
                body += self._pass(level, reduces, outputs)
        return [*body, *self._store_rows()]

    # -- what depends on what ------------------------------------------------------------------------------------------------------

    def _levels(self) -> dict[int, int]:
        """How many reductions come before each value."""
        level: dict[int, int] = {}
        for value in self.plan.program.values:
            below = max((level[ref] for ref in value.refs), default=0)
            level[value.id] = below + (value.kind == "reduce")
        return level

    def _output_level(self, output: Output) -> int:
        return self.level[output.value.id] if isinstance(output.value, Ref) else 0

    def _choose_kept(self) -> None:
        """Dear values along the row that a later pass needs again."""
        plan, program = self.plan, self.plan.program
        if self.scans or not self._keeps:
            return
        for value in program.of_kind("map"):
            if value.op not in _DEAR or not plan.along_row(value) or not value.dtype.startswith("float"):
                continue
            users = [user for user in program.values if value.id in user.refs]
            later = any(self._pass_of(user) > self.level[value.id] for user in users)
            if later or any(
                isinstance(o.value, Ref) and o.value.id == value.id and self._output_level(o) > self.level[value.id]
                for o in program.outputs
            ):
                self.kept[value.id] = self.vars.new("kept")

    def _pass_of(self, value: Value) -> int:
        """The pass in which a value's operands are read."""
        return self.level[value.id] - (value.kind == "reduce")

    # -- stretches of code ---------------------------------------------------------------------------------------------------------

    def _start(self) -> list[str]:
        lines = ["const int lane = threadIdx.x;"]
        if self.rows is not None:
            lines.append("const int row = blockIdx.x * ROWS + threadIdx.y;" if self.several else "const int row = blockIdx.x;")
            lines += self._row_parts()
        return lines

    def _row_parts(self) -> list[str]:
        """A row's number in the dimensions of which the tensors have parts."""
        if self.rows is None:
            return []
        return [f"const int {line.replace('//', '/')};" for line in self.layout.part_lines(self.rows, self.plan.tensors)]

    def _early(self, kind: str) -> list[str]:
        """Single elements beside the row: on their way together with it. Asked for behind its reductions each is waited for alone."""
        program = self.plan.program
        wanted = [value.id for value in program.of_kind(kind) if self.level[value.id] == 0 and not self.plan.along_row(value)]
        self.scope.lines = []
        self.scope.compute(wanted, name_all=True)
        return list(self.scope.lines)

    def _fetch_row(self) -> list[str]:
        """The row into registers: all loads are on their way before the first is waited for."""
        return [*self._declare(self.loads, self.packs), *self._fetch_into(self.loads, self.packs)]

    def _declare(self, loads: Sequence[Value], packs: Mapping[int, str]) -> list[str]:
        return [f"Pack<{self._type(value)}, VECTOR> {packs[value.id]}[ITEMS];" for value in loads]

    def _fetch_into(self, loads: Sequence[Value], packs: Mapping[int, str]) -> list[str]:
        head = ["#pragma unroll", "for (int k = 0; k < ITEMS; ++k) {", "  const int col = (k * LANES + lane) * VECTOR;"]
        inner = [f"    {packs[value.id]}[k] = {self._fetch(value)};" for value in loads]
        return [*head, "  if (EVEN || col < N) {", *inner, "  }", "}"]

    def _again(self) -> list[str]:
        """Before a further pass over a long held row of half types: see ``again`` in the prelude."""
        return [] if not self.held or self._keeps else self._unconverted(self.loads)

    def _unconverted(self, loads: Sequence[Value]) -> list[str]:
        """Keeps the compiler from holding what it has made of narrow operands in place of these."""
        narrow = [value for value in loads if ITEM_BYTES[self.launcher.dtypes.get(value.input, value.dtype)] < 4]
        calls = [f"  again({self.packs[value.id]}[k]);" for value in narrow]
        head = ["#pragma unroll", "for (int k = 0; k < ITEMS; ++k) {" if len(calls) > 1 else "for (int k = 0; k < ITEMS; ++k)"]
        return [*head, *calls, *(["}"] if len(calls) > 1 else [])] if calls else []

    def _pass(self, level: int, reduces: Sequence[Value], outputs: Sequence[Output]) -> list[str]:
        scope = self.scope
        scope.lines = []
        targets = [value.refs[0] for value in reduces] + [o.value.id for o in outputs if isinstance(o.value, Ref)]
        targets += [id for id in self.kept if self.level[id] == level]
        self._know_rows(targets, level)
        before = list(scope.lines)
        totals = {
            value.id: scope.names.new({"sum": "total", "max": "peak", "min": "least", "prod": "product"}[value.op]) for value in reduces
        }
        pairs = {value.id: scope.names.new(f"{totals[value.id]}_of_pairs") for value in reduces if self._in_pairs(value)}
        starts = [
            f"Extreme<{OPS[value.op]}, {self._type(self.plan.program[value.refs[0]])}> {pairs[value.id]}({self._neutral(value)});"
            if value.id in pairs else f"{c_type(value.dtype)} {totals[value.id]} = {self._neutral(value)};"
            for value in reduces
        ]  # fmt: skip
        inner = CudaScope(self.plan.program, scope.names.copy(), self._element_source, dict(scope.env))
        for id, array in self.kept.items():
            if self.level[id] < level:
                inner.env[id] = CExpr(f"{array}[k][e]")
        kept_lines = [f"float {array}[ITEMS][VECTOR];" for id, array in self.kept.items() if self.level[id] == level]
        if self.scans:
            loop = self._loop(self._scan_body(inner, outputs))
        else:

            def loop_in(inner: CudaScope) -> list[str]:
                return self._loop(self._element_body(inner, level, reduces, totals, outputs, pairs))

            loop = below(self.plan, inner, targets, scope.names, loop_in) if self.held else loop_in(inner)
        after = [
            f"{c_type(value.dtype)} {totals[value.id]} = {self._across(value, f'{pairs[value.id]}.value()')};" if value.id in pairs
            else f"{totals[value.id]} = {self._across(value, totals[value.id])};"
            for value in reduces
        ]  # fmt: skip
        for value in reduces:
            scope.env[value.id] = CExpr(totals[value.id])
        return [*before, *starts, *kept_lines, *loop, *after]

    def _in_pairs(self, value: Value) -> bool:
        """Whether it is the extreme of what a thread holds as half types: then two are compared by one instruction, as they are."""
        source = self.plan.program[value.refs[0]] if value.refs else None
        if not self.held or value.op not in ("max", "min") or source is None or source.kind != "load" or not self.plan.along_row(source):
            return False
        return value.dtype == "float32" and self.launcher.dtypes.get(source.input) in ("bfloat16", "float16")

    def _element_body(
        self, inner: CudaScope, level: int, reduces: Sequence[Value], totals: Mapping[int, str], outputs: Sequence[Output],
        pairs: Mapping[int, str],
    ) -> list[str]:  # fmt: skip
        kept = [id for id in self.kept if self.level[id] == level]
        single = [value for value in reduces if value.id not in pairs]
        inner.compute([*kept, *(v.refs[0] for v in single), *(o.value.id for o in outputs if isinstance(o.value, Ref))])
        lines = [f"{self.kept[id]}[k][e] = {inner.env[id].text};" for id in kept]
        lines += [f"{totals[v.id]} = {OPS[v.op]}::of({totals[v.id]}, {self._as(v, inner)});" for v in single]
        lines += [f"{self.outputs[o]}s.at[e] = {self._down(o, inner)};" for o in outputs]
        declared = [f"Pack<{c_type(o.dtype)}, VECTOR> {self.outputs[o]}s;" for o in outputs]
        puts = [f"put({self.outputs[o]}_ptr + {self._offset(o.atoms)}, {self.outputs[o]}s);" for o in outputs]
        elements = [f"{pairs[v.id]}.take({self.packs[v.refs[0]]}[k]);" for v in reduces if v.id in pairs]
        if lines:
            elements += ["#pragma unroll", "for (int e = 0; e < VECTOR; ++e) {", *(f"  {line}" for line in [*inner.lines, *lines]), "}"]
        text = "\n".join(elements)
        loaded = [value for value in self.loads if re.search(rf"\b{self.packs[value.id]}\b", text)]
        return ["if (EVEN || col < N) {", *indented([*self._refetch(loaded), *declared, *elements, *puts]), "}"]

    def _scan_body(self, inner: CudaScope, outputs: Sequence[Output]) -> list[str]:
        """Every thread takes part in every round, those beyond the row's end with nothing."""
        (scan,) = self.plan.program.of_kind("scan")
        op, kind, neutral = OPS[scan.op], c_type(scan.dtype), self._neutral(scan)
        first = CudaScope(self.plan.program, inner.names.copy(), self._element_source, dict(inner.env))
        first.compute([scan.refs[0]])
        running = [*first.lines, f"sum = {op}::of(sum, {first.operand(scan.args[0], scan.dtype).text});", "scanned[e] = sum;"]
        inner.env[scan.id] = CExpr("result")
        inner.compute([o.value.id for o in outputs if isinstance(o.value, Ref)])
        lines = [f"const {kind} result = {op}::of(carry, {op}::of(own, scanned[e]));", *inner.lines]
        lines += [f"{self.outputs[o]}s.at[e] = {self._down(o, inner)};" for o in outputs]
        puts = [f"put({self.outputs[o]}_ptr + {self._offset(o.atoms)}, {self.outputs[o]}s);" for o in outputs]
        fetches = [line.replace("const ", "", 1) for line in self._refetch(self.loads)]
        packs = [] if self.held else [line.split(" = ")[0] + ";" for line in fetches]
        loaded = [] if self.held else [line.split("> ", 1)[1] for line in fetches]
        return [
            *packs, f"{kind} scanned[VECTOR], sum = {neutral}, whole;", "if (EVEN || col < N) {",
            *indented([*loaded, "#pragma unroll", "for (int e = 0; e < VECTOR; ++e) {", *indented(running), "}"]), "}",
            f"const {kind} own = before<{op}>(sum, static_cast<{kind}>({neutral}), &whole);",
            "if (EVEN || col < N) {",
            *indented([*(f"Pack<{c_type(o.dtype)}, VECTOR> {self.outputs[o]}s;" for o in outputs)]),
            *indented(["#pragma unroll", "for (int e = 0; e < VECTOR; ++e) {", *indented(lines), "}", *puts]), "}",
            f"carry = {op}::of(carry, whole);",
        ]  # fmt: skip

    def _loop(self, body: Sequence[str]) -> list[str]:
        carry = []
        if self.scans:
            (scan,) = self.plan.program.of_kind("scan")
            carry = [f"{c_type(scan.dtype)} carry = {self._neutral(scan)};"]
        if self.held:
            head = ["#pragma unroll", "for (int k = 0; k < ITEMS; ++k) {", "  const int col = (k * LANES + lane) * VECTOR;"]
        elif self.scans:  # all threads of a row go the same number of rounds
            head = ["for (int base = 0; base < N; base += LANES * VECTOR) {", "  const int col = base + lane * VECTOR;"]
        else:
            head = ["#pragma unroll 4", "for (int col = lane * VECTOR; col < N; col += LANES * VECTOR) {"]
        return [*carry, *head, *indented(body), "}"]

    def _refetch(self, loads: Sequence[Value]) -> list[str]:
        if self.held:
            return []
        return [f"const Pack<{self._type(v)}, VECTOR> {self.packs[v.id]} = {self._fetch(v)};" for v in loads]

    def _fetch(self, value: Value) -> str:
        return f"fetch<{self._type(value)}, VECTOR>({value.input}_ptr + {self._offset(value.atoms)})"

    def _know_rows(self, targets: Sequence[int], level: int) -> None:
        """Values of one element a row that the pass needs: computed before it."""
        plan = self.plan
        needed = plan.program.needed(targets, stop=set(self.scope.env) | {id for id in self.kept if self.level[id] < level})
        inside = {value.id for value in needed if plan.along_row(value)}
        frontier = {ref for value in needed if value.id in inside for ref in value.refs} | set(targets)
        wanted = [value.id for value in needed if value.id in frontier - inside and value.id not in self.scope.env]
        self.scope.compute(wanted, name_all=True)

    def _store_rows(self) -> list[str]:
        outputs = self.plan.row_outputs
        if not outputs:
            return []
        self.scope.lines = []
        self.scope.compute([o.value.id for o in outputs if isinstance(o.value, Ref)])
        stores = [f"{self.outputs[o]}_ptr[{self._offset(o.atoms)}] = {self._down(o, self.scope)};" for o in outputs]
        return [*self.scope.lines, "if (lane == 0) {", *indented(stores), "}"]

    # -- texts of values -----------------------------------------------------------------------------------------------------------

    def _row_source(self, value: Value) -> CExpr | None:
        if value.kind == "load" and not self.plan.along_row(value):
            return CExpr(f"up({value.input}_ptr[{self._offset(value.atoms)}])")
        if value.kind == "gather":
            return self._picked(value)
        return self._common(value)

    def _element_source(self, value: Value) -> CExpr | None:
        if value.kind == "load" and self.plan.along_row(value):
            pack = self.packs[value.id]
            return CExpr(f"up({pack}[k].at[e])" if self.held else f"up({pack}.at[e])")
        if value.kind == "index":
            return CExpr("(col + e)")
        return self._row_source(value)

    def _common(self, value: Value) -> CExpr | None:
        if value.kind == "scalar":
            return CExpr(f"static_cast<{c_type(value.dtype)}>({value.input}_)")
        if value.kind == "size":
            if set(value.over) == set(self.plan.reduced):
                return CExpr("N")
            if set(value.over) == set(self.plan.kept):
                return CExpr("M")
        return None

    def _picked(self, value: Value) -> CExpr:
        """An element at a position of the row; 0 where the position lies outside."""
        position = self.scope.operand(value.args[0])
        axis = replace(self.columns, name=position.operand)
        layout = Layout(tuple(axis if other is self.columns else other for other in self.layout.axes))
        text = f"up({value.input}_ptr[{layout.offset(value.atoms)}])"
        return CExpr(f"{self.scope.operand(value.args[1]).operand} ? {text} : {c_constant(0, value.dtype).text}", False)

    def _across(self, value: Value, total: str) -> str:
        """The row's result from every thread's share of it."""
        return f"across<{self.op_name(value)}>({total}, {self._neutral(value)})"

    @staticmethod
    def op_name(value: Value) -> str:
        """The source's name of what a reduction combines by."""
        return OPS[value.op]

    def _as(self, reduce: Value, inner: CudaScope) -> str:
        text = inner.operand(reduce.args[0], reduce.dtype).text
        source = self.plan.program[reduce.refs[0]] if reduce.refs else None
        return text if source is not None and source.dtype == reduce.dtype else f"static_cast<{c_type(reduce.dtype)}>({text})"

    def _down(self, output: Output, scope: CudaScope) -> str:
        return f"Down<{c_type(output.dtype)}>::of({scope.operand(output.value, output.dtype).text})"

    def _neutral(self, value: Value) -> str:
        number = NEUTRAL[value.op]
        if not value.dtype.startswith("float") and number in (float("inf"), float("-inf")):
            bits = {"int64": 63, "int32": 31}.get(value.dtype)
            if bits is None:
                raise UnsupportedError(f"the extreme of {value.dtype} in CUDA C++")
            return f"static_cast<{c_type(value.dtype)}>({-(2**bits) + 1 if number < 0 else 2**bits - 1}LL)"
        return c_constant(number, value.dtype).text

    def _type(self, value: Value) -> str:
        dtype = self.launcher.dtypes.get(value.input)
        return c_type(dtype if dtype is not None else value.dtype)

    def _offset(self, atoms: tuple[int, ...]) -> str:
        return self.layout.offset(atoms).replace("//", "/")

    # -- the launch ----------------------------------------------------------------------------------------------------------------

    def _doc(self) -> str:
        if self.several:
            return "A warp a row, ROWS of them in a block; the row stays in registers between its read and its write."
        return "A block a row, which stays in registers between its read and its write." if self.held else "A block walks its row."

    def _lanes(self) -> str:
        return "32" if self.several else str(self.literal.get("LANES", "LANES"))

    def _rows(self) -> str:
        return self.launcher.size(self.plan.kept) if self.plan.kept else "1"

    def _grid(self) -> str:
        return f"ceil_div({self._rows()}, ROWS)" if self.several else self._rows()

    def _block(self) -> tuple[str, str]:
        return (self._lanes(), "ROWS" if self.several else "1")

    def _finish(self, kernel: CudaKernel) -> None:
        text = "\n".join(kernel.body)
        program = self.plan.program
        inputs = dict.fromkeys(value.input for value in program.of_kind("load", "gather"))
        for name in inputs:
            value = next(value for value in program.of_kind("load", "gather") if value.input == name)
            kernel.parameters.append(pointer(f"{name}_ptr", self.launcher.dtypes.get(name, value.dtype), name))
        for name in dict.fromkeys(value.input for value in program.of_kind("scalar")):
            floating = any(value.dtype.startswith("float") for value in program.of_kind("scalar") if value.input == name)
            kernel.parameters.append(("double" if floating else "int", f"{name}_", name))
        for output in program.outputs:
            kernel.parameters.append(pointer(f"{self.outputs[output]}_ptr", output.dtype, self.outputs[output], written=True))
        for axis, whole in ((self.rows, self._rows()), (self.columns, self.launcher.size(self.plan.reduced))):
            if axis is None:
                continue
            kernel.parameters.append(("const int", axis.size, whole))
            if axis.is_split:
                for place, group in enumerate(axis.groups):
                    if re.search(rf"\b{axis.group_size(place)}\b", text):
                        kernel.parameters.append(("const int", axis.group_size(place), self.launcher.size(group)))

    @property
    def held_bytes(self) -> int:
        """Bytes of registers for an element of a held row: as it was read, and as values that are kept."""
        return sum(ITEM_BYTES[self.launcher.dtypes.get(value.input, value.dtype)] for value in self.loads) + 4 * len(self.kept)

    @property
    def most(self) -> int:
        """Elements of the widest access: 16 bytes of the narrowest tensor along the row."""
        sizes = [ITEM_BYTES[self.launcher.dtypes.get(value.input, value.dtype)] for value in self.loads]
        return 16 // min([*sizes, *(ITEM_BYTES[output.dtype] for output in self.plan.full_outputs)])


def fitting(most: int, length: int) -> int:
    """Elements of an access that divide the length."""
    while most > 1 and length % most:
        most //= 2
    return most

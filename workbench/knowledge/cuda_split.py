"""Writes a row program as two CUDA C++ kernels for few and long rows: many blocks share each row, and read it twice.

The first kernel leaves each tile's share of the statistics, the second one combines them and writes the results. What is in the cache of
the card after the first is not read from memory again: the second walks the tiles backwards. Blocks that run at the same time work on the
same columns of different rows, so that weights along the row are read once.

What that must cost for layer norm of 16 x 4194304 float32 (H200, a copy reaches 4.28 TB/s): two reads and a write of 268 MB and 33.5 MB
of weights are 0.196 ms, or 43 times as fast as eager; with 30 to 40 MB of the second read still in the L2, 0.187 ms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_emit import CExpr
from workbench.knowledge.cuda_module import CudaKernel
from workbench.knowledge.cuda_rows import CudaRowWriter
from workbench.knowledge.cuda_scope import CudaScope, indented
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.program import Output, Ref, Value
from workbench.knowledge.row_plan import RowPlan, Track

SHARES = """
#define TILE (LANES * VECTOR * ITEMS)

// Which row and which stretch of it a block works on: neighbouring blocks on the same columns of different rows, if FAST.
__device__ __forceinline__ int row_of(int block, int rows, int stretches) { return FAST ? block % rows : block / stretches; }
__device__ __forceinline__ int stretch_of(int block, int rows, int stretches) { return FAST ? block / rows : block % stretches; }
"""


class CudaSplitWriter(CudaRowWriter):
    """Both kernels of a row program whose statistics are found in one pass."""

    def __init__(self, plan: RowPlan, launcher: Launcher, names: Mapping[Output, str], name: str) -> None:
        super().__init__(plan, launcher, names, name, held=True, several=False)
        passes = plan.tracks(True, True)
        if self.scans or plan.program.of_kind("gather", "index") or len(passes) != 1:
            raise UnsupportedError("statistics that are not found in one pass, of rows that are split")
        if any(value.dtype != "float32" for value in plan.program.of_kind("reduce")):
            raise UnsupportedError("a reduction that is not in float32, of rows that are split")
        self.tracks: tuple[Track, ...] = passes[0]
        self._needed: set[int] = set()
        self._last_use = False
        for word in ("tile", "tiles", "round", "begin", "group", "groups", "shares", "share", "count", "away", "t"):
            self.vars.new(word)

    @property
    def words(self) -> int:
        """Numbers that a tile leaves."""
        return sum(1 if track.kind == "plain" else 2 for track in self.tracks)

    def partial(self, name: str) -> CudaKernel:
        """The first kernel."""
        firsts = [self._first(track) for track in self.tracks]
        seconds = [self.plan.program[track.second] for track in self.tracks if track.kind != "plain"]
        self._needed = self._loads_of([value.refs[0] for value in (*firsts, *seconds)])
        body = [
            "const int lane = threadIdx.x, row = row_of(blockIdx.x, M, tiles), tile = stretch_of(blockIdx.x, M, tiles);",
            *self._row_parts(), "const int begin = tile * TILE;", *self._fetch_row(), *self._reduce(firsts),
        ]  # fmt: skip
        for track in self.tracks:
            if track.kind == "moments":  # the mean of the tile, not yet of the row
                middle = self.vars.new("middle")
                total = self.scope.env[track.total].text
                body.append(f"const float {middle} = {total} / (N - begin < TILE ? N - begin : TILE);")
                self.scope.env[track.result] = CExpr(middle)
        body += self._reduce(seconds) if seconds else []
        body += ["if (lane == 0) {", f"  float* const share = shares + (row * tiles + tile) * {self.words};"]
        body += [*(f"  share[{place}] = {self.scope.env[value.id].text};" for place, value in enumerate(self._left())), "}"]
        return self._kernel(name, "Each block leaves its tile's share of the row's statistics.", body, kind="float* __restrict__")

    def finish(self, name: str) -> CudaKernel:
        """The second kernel."""
        self.scope.env.clear()
        self._last_use = True
        merged, outputs = self._merged(), list(self.plan.full_outputs)
        share = [*self._row_parts(), f"const float* const share = shares + row * tiles * {self.words};"]
        if outputs:
            self._needed = self._loads_of([o.value.id for o in outputs if isinstance(o.value, Ref)])
            written = self._pass(max(self.level.values()), (), outputs)
            body = [
                "const int groups = (tiles + ROUNDS - 1) / ROUNDS, row = row_of(blockIdx.x, M, groups);",
                "const int lane = threadIdx.x, group = groups - 1 - stretch_of(blockIdx.x, M, groups);", *share, *merged,
                "for (int round = ROUNDS - 1; round >= 0; --round) {",
                *indented(["const int begin = (group * ROUNDS + round) * TILE;", *self._fetch_row(), *written]), "}",
            ]  # fmt: skip
            doc = "Each block combines the shares of its row, and writes a stretch of the result; the last stretch first."
        else:
            body = ["const int lane = threadIdx.x, row = blockIdx.x, group = 0;", *share, *merged]
            doc = "Each block combines the shares of its row."
        body += [line.replace("if (lane == 0) {", "if (group == 0 && lane == 0) {") for line in self._store_rows()]
        return self._kernel(name, doc, body, kind="const float* __restrict__")

    # -- stretches of code ---------------------------------------------------------------------------------------------------------

    def _loads_of(self, targets: Sequence[int]) -> set[int]:
        """What must be fetched along the row for these values, where the statistics are known."""
        return {value.id for value in self.plan.program.needed(targets, stop=set(self.scope.env)) if value.kind == "load"}

    def _first(self, track: Track) -> Value:
        """The reduction of a track that needs no other."""
        return self.plan.program[track.total if track.kind == "moments" else track.result]

    def _left(self) -> list[Value]:
        """What a tile leaves, in order."""
        left = []
        for track in self.tracks:
            left.append(self._first(track))
            if track.kind != "plain":
                left.append(self.plan.program[track.second])
        return left

    def _reduce(self, values: Sequence[Value]) -> list[str]:
        """Reductions over the tile in registers, in one loop."""
        scope = self.scope
        scope.lines = []
        self._know_rows([value.refs[0] for value in values], 0)
        before = list(scope.lines)
        totals = {
            value.id: scope.names.new({"sum": "total", "max": "peak", "min": "least", "prod": "product"}[value.op]) for value in values
        }
        inner = CudaScope(self.plan.program, scope.names.copy(), self._element_source, dict(scope.env))
        inner.compute([value.refs[0] for value in values])
        lines = [*inner.lines, *(f"{totals[v.id]} = {self.op_name(v)}::of({totals[v.id]}, {self._as(v, inner)});" for v in values)]
        loop = ["if (EVEN || col < N) {", "#pragma unroll", "  for (int e = 0; e < VECTOR; ++e) {", *indented(indented(lines)), "  }", "}"]
        found = [*before, *(f"float {totals[v.id]} = {self._neutral(v)};" for v in values), *self._loop(loop)]
        for value in values:
            found.append(f"{totals[value.id]} = {self._across(value, totals[value.id])};")
            scope.env[value.id] = CExpr(totals[value.id])
        return found

    def _merged(self) -> list[str]:
        """The row's statistics from its tiles' shares, always in one order."""
        scope, lines, place = self.scope, [], 0
        scope.lines = []
        for track in self.tracks:
            first = self._first(track)
            name = scope.names.new({"sum": "total", "max": "peak", "min": "least", "prod": "product"}[first.op])
            at = f"share[t * {self.words} + {place}]"
            lines += self._over(name, self._neutral(first), [f"{name} = {self.op_name(first)}::of({name}, {at});"])
            lines.append(f"{name} = {self._across(first, name)};")
            scope.env[first.id] = CExpr(name)
            place += 1
            if track.kind == "plain":
                continue
            second = self.plan.program[track.second]
            other, rest = scope.names.new("total"), f"share[t * {self.words} + {place}]"
            if track.kind == "online":
                # A tile of nothing but minus infinity has no share.
                step = [f"if ({at} != {self._neutral(first)}) {other} += {rest} * fast_exp({at} - {name});"]
            else:
                scope.compute([track.result], name_all=True)
                lines += scope.lines
                scope.lines = []
                mean = scope.env[track.result].operand
                step = [
                    "const int count = N - t * TILE < TILE ? N - t * TILE : TILE;", f"const float away = {at} / count - {mean};",
                    f"{other} += {rest} + away * away * count;",
                ]  # fmt: skip
            lines += self._over(other, "0.0f", step)
            lines.append(f"{other} = {self._across(second, other)};")
            scope.env[second.id] = CExpr(other)
            place += 1
        return lines

    def _over(self, name: str, start: str, step: Sequence[str]) -> list[str]:
        # Several shares on their way at once: one block reads all of a row's.
        head = f"#pragma unroll {4 if self.plan.full_outputs else 8}"
        return [f"float {name} = {start};", head, "for (int t = lane; t < tiles; t += LANES) {", *indented(step), "}"]

    def _fetch_row(self) -> list[str]:
        every, self.loads = self.loads, [value for value in self.loads if value.id in self._needed]
        lines = super()._fetch_row()
        self.loads = every
        return [line.replace("const int col = (k", "const int col = begin + (k") for line in lines]

    def _loop(self, body: Sequence[str]) -> list[str]:
        return [line.replace("const int col = (k", "const int col = begin + (k") for line in super()._loop(body)]

    def _fetch(self, value: Value) -> str:
        kind = self._type(value)
        if self._last_use and self.plan.is_full(value):
            return f"fetch<{kind}, VECTOR>({value.input}_ptr + {self._offset(value.atoms)})"
        return f"take<{kind}, VECTOR>(reinterpret_cast<const unsigned char*>({value.input}_ptr + {self._offset(value.atoms)}))"

    # -- the kernels' frame --------------------------------------------------------------------------------------------------------

    def _kernel(self, name: str, doc: str, body: Sequence[str], kind: str) -> CudaKernel:
        kernel = CudaKernel(name, doc, "LANES", grid="", block=("LANES", "1"))
        kernel.body = [*([] if self.rows is not None else ["const int M = 1;"]), *body]
        self._finish(kernel)
        text = "\n".join(kernel.body)
        kernel.parameters = [one for one in kernel.parameters if one[0] == "const int" or re.search(rf"\b{one[1]}\b", text)]
        kernel.parameters += [(kind, "shares", "shares"), ("const int", "tiles", "tiles")]
        return kernel

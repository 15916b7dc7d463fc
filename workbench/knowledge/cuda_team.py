"""Writes a row program as CUDA C++ for rows that no single block can hold: a team of blocks keeps them in shared memory.

Each warp owns a stretch of the row and a ring of chunks for it in shared memory. The copy engine fills the ring in the order in which the
chunks will be used, across rows: as soon as a chunk's results are written, its place in the ring is asked to hold one of a later row, so
that loads of the next row run beside the reductions and stores of this one. Each element is read from memory once and written once.

What that must cost, for the row that it was made for (H200, a copy reaches 4.28 TB/s): softmax of 4096 x 393216 float32 moves 12.9 GB,
3.0 ms. Eight blocks of a cluster hold a row in 192 of 227 KiB each, one block a multiprocessor, 16 clusters on 128 of 132 of them. A row
takes a cluster at least 12 µs of memory time at its share of the bandwidth, and 3 to 4 µs in which it may wait: two exchanges over the
cluster at 1 µs and a pass of 49152 exponentials a multiprocessor at 16 a clock, 1.7 µs. While one cluster waits the others have the memory.
Expected were 3.2 to 3.5 ms; measured are 3.44 ms with two exchanges a row, where a kernel that reads twice takes 4.8 ms. One pass and one
exchange for maximum and sum take away half of the waiting: 3.2 ms are expected of them. Rows that one block can hold in registers
are faster there (256 KiB: 0.19 against 0.24 ms), and a team of the whole card, whose exchanges go through global memory, was slower than
two kernels (`cuda_split`): an exchange took 7 µs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_emit import CExpr, c_type
from workbench.knowledge.cuda_module import CudaKernel
from workbench.knowledge.cuda_rows import CudaRowWriter
from workbench.knowledge.cuda_scope import CudaScope, indented
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.program import Output, Ref, Value
from workbench.knowledge.row_plan import RowPlan, Track
from workbench.task import ITEM_BYTES

_TAKEN = (
    "warp", "rank", "turn", "turns", "chunk", "begin", "order", "slots", "bars", "slot", "call", "first", "each", "seen", "higher", "sum",
    "i", "at", "number", "step", "room",
)  # fmt: skip
"""Names of the kernel's own."""


class CudaTeamWriter(CudaRowWriter):
    """The one kernel of a row program.

    Args:
        online: a maximum and the sum of exponentials below it are found in one pass, rescaled once a chunk, and by one exchange.

    Attributes:
        ragged: rows that don't begin at whole 16-byte words, as the copy engine needs them: a chunk is copied from the word in which
            it begins to the one in which it ends, and read element by element from where it lies in the first.
    """

    _meeting = "rank, call"
    """What an exchange is told of where it takes place."""

    def __init__(self, plan: RowPlan, launcher: Launcher, names: Mapping[Output, str], name: str, *, online: bool = False) -> None:
        super().__init__(plan, launcher, names, name, held=False, several=False)
        self._admit()
        if any(ITEM_BYTES[value.dtype] != 4 for value in plan.program.of_kind("reduce")):
            raise UnsupportedError("a reduction that is not in 32 bits, over a team of blocks")
        self.held_loads = [value for value in self.loads if plan.is_full(value)]
        if not self.held_loads:
            raise UnsupportedError("no operand that is as large as the result")
        widest = super().most
        self.ragged = plan.length % widest > 0 or any(plan.length % self._word(value) for value in self.held_loads)
        for word in _TAKEN:
            self.vars.new(word)
        levels = [level for level in range(max(self.level.values(), default=0) + 1) if self._works(level)]
        self._first, self._last = levels[0], levels[-1]
        self._now = 0
        self.online = self._pair() if online else None
        if online and self.online is None:
            raise UnsupportedError("no maximum with a sum of exponentials below it alone")
        if self.online is not None and self._last < self.level[self.online.second]:
            self._last = self._first  # the one pass for both is all

    def _admit(self) -> None:
        if self.scans or self.plan.program.of_kind("gather") or not self.plan.full_outputs:
            raise UnsupportedError("a row that is not written as a whole, in the memory of a team of blocks")

    @property
    def item_bytes(self) -> int:
        """Bytes in the ring that one column takes."""
        return sum(ITEM_BYTES[self.launcher.dtypes[value.input]] for value in self.held_loads)

    @property
    def spare_bytes(self) -> int:
        """Bytes of a chunk's place beside its columns."""
        return 16 * len(self.held_loads) if self.ragged else 0

    @property
    def most(self) -> int:
        return 1 if self.ragged else super().most

    def _word(self, value: Value) -> int:
        """Elements of the 16-byte words that the copy engine moves."""
        return 16 // ITEM_BYTES[self.launcher.dtypes[value.input]]

    def write(self) -> CudaKernel:
        inner = [*self._start()]
        if self.online is not None:
            inner += self._both(self.online)
        for level in range(self.level[self.online.second] if self.online is not None else 0, self._last + 1):
            reduces = [value for value in self.plan.program.of_kind("reduce") if self.level[value.id] == level + 1]
            outputs = [output for output in self.plan.full_outputs if self._output_level(output) == level]
            if reduces or outputs:
                self._now = level
                inner += self._pass(level, reduces, outputs)
        inner += self._store_rows()
        kernel = self._kernel()
        kernel.body = [*self._before(), "for (int turn = 0; turn < turns; ++turn) {", *indented([f"const int row = {self._row()};"])]
        kernel.body += [*indented(inner), "}"]
        self._finish(kernel)
        return kernel

    def _kernel(self) -> CudaKernel:
        kernel = CudaKernel(self.name, self._doc(), "32 * WARPS, 1", grid="", block=("32 * WARPS", "1"))
        kernel.attributes = "__cluster_dims__(TEAM, 1, 1)"
        return kernel

    def _finish(self, kernel: CudaKernel) -> None:
        super()._finish(kernel)
        kernel.parameters.append(("const int", "each", "each"))

    def _row(self) -> str:
        """The row of a turn."""
        return "first + turn"

    # -- stretches of code ---------------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> bool:
        """Whether maximum and sum of exponentials can be found together."""
        return self._pair() is not None

    def _pair(self) -> Track | None:
        """The maximum and sum, where they are all that is reduced and nothing is written before them."""
        passes = self.plan.tracks(True, False)
        only = len(passes) == 1 and len(passes[0]) == 1 and passes[0][0].kind == "online"
        whole = all(self._output_level(output) == self._last for output in self.plan.full_outputs)
        return passes[0][0] if only and whole and self.plan.program[passes[0][0].result].dtype == "float32" else None

    def _both(self, track: Track) -> list[str]:
        """The one pass before the results are written."""
        scope, self._now = self.scope, self._first
        scope.lines = []
        self._know_rows([track.source], 0)
        peak, total = scope.names.new("peak"), scope.names.new("total")
        inner = CudaScope(self.plan.program, scope.names.copy(), self._element_source, dict(scope.env))
        inner.compute([track.source])
        text = inner.operand(Ref(track.source)).text
        lines = [*inner.lines, f"seen[step][e] = {text};", "higher = Max::of(higher, seen[step][e]);"]
        packs = [value for value in self.loads if re.search(rf"\b{self.packs[value.id]}\b", "\n".join(lines))]
        body = ["if (EVEN || col < N) {", *indented([*self._refetch(packs), "#pragma unroll", "for (int e = 0; e < VECTOR; ++e) {"])]
        body += [*indented(indented(lines)), "  }", "}"]
        loop = self._loop(body)
        at = loop.index("#pragma unroll")
        nothing = self._neutral(self.plan.program[track.result])
        head = [f"float seen[STEPS][VECTOR], higher = {peak};", "#pragma unroll", "for (int i = 0; i < STEPS * VECTOR; ++i)"]
        head.append(f"  seen[i / VECTOR][i % VECTOR] = {nothing};")
        tail = [
            f"if (higher != {nothing}) {{", "  float sum = 0.0f;", "#pragma unroll", "  for (int i = 0; i < STEPS * VECTOR; ++i)",
            "    sum += fast_exp(seen[i / VECTOR][i % VECTOR] - higher);", f"  {total} = {total} * fast_exp({peak} - higher) + sum;",
            f"  {peak} = higher;", "}",
        ]  # fmt: skip
        scope.env[track.result], scope.env[track.second] = CExpr(peak), CExpr(total)
        loop = [*loop[:at], *indented(head), *loop[at:-1], *indented(tail), loop[-1]]
        exchange = f"both_across({peak}, {total}, {self._meeting});"
        return [*scope.lines, f"float {peak} = {nothing}, {total} = 0.0f;", *loop, exchange]

    def _works(self, level: int) -> bool:
        reduces = any(self.level[value.id] == level + 1 for value in self.plan.program.of_kind("reduce"))
        return reduces or any(self._output_level(output) == level for output in self.plan.full_outputs)

    def _places(self) -> list[str]:
        """Which rows and which stretch of each are this warp's."""
        return [
            "const int rank = cluster_rank(), first = blockIdx.x / TEAM * each;",
            "const int turns = M - first < each ? M - first : each;", "unsigned call = 0;",
            "const int begin = (rank * WARPS + warp) * (CHUNKS * CHUNK);  // of this warp's stretch of the row",
        ]  # fmt: skip

    def _meet(self) -> list[str]:
        """What all wait for before the first row."""
        return ["cluster_arrive();  // no block writes into the memory of one that has not begun", "cluster_wait();"]

    def _before(self) -> list[str]:
        """The place in the team, the ring, and the first chunks on their way."""
        rows = [] if self.rows is not None else ["const int M = 1;"]
        parts = self._row_parts()
        copies = self._ragged_copies() if self.ragged else self._copies()
        return [
            *rows, "const int lane = threadIdx.x, warp = lane / 32;", *self._places(),
            "word* const bars = reinterpret_cast<word*>(room) + WORDS + warp * SLOTS;",
            "unsigned char* const slots = room + HEAD + warp * (SLOTS * SLOT);",
            "// Asks for a chunk, in the order in which chunks are used.",
            "const auto order = [&](int number) {",
            *indented([
                f"const int turn = number / CHUNKS, row = {self._row()}, col = begin + number % CHUNKS * CHUNK;",
                "const int slot = number % SLOTS;",
                "if (turn >= turns) return;",
                "const int count = EVEN || col + CHUNK <= N ? CHUNK : col < N ? N - col : 0;",
                *parts,
                *copies,
            ]),
            "};",
            "if (lane % 32 == 0) {",
            "  for (int slot = 0; slot < SLOTS; ++slot) make_barrier(bars + slot);",
            "  show_barriers();",
            "  for (int number = 0; number < SLOTS; ++number) order(number);",
            "}",
            "__syncwarp();",
            *self._meet(),
        ]  # fmt: skip

    def _copies(self) -> list[str]:
        """A chunk's columns of each operand, on their way."""
        lines = [f"announce(bars + slot, count * {self.item_bytes});"]
        for value in self.held_loads:
            many = f"count * sizeof({self._type(value)})"
            lines.append(
                f"if (count > 0) bring({self._place(value)}, {value.input}_ptr + {self._offset(value.atoms)}, {many}, bars + slot);"
            )
        return lines

    def _ragged_copies(self) -> list[str]:
        """The same, by the words in which the columns lie."""
        lines, brought, total = [], [], []
        for value in self.held_loads:
            at, many, word = f"{value.input}_at", f"{value.input}_many", self._word(value)
            words = f"({at} % {word} + count + {word - 1}) / {word}"
            lines.append(f"const int {at} = {self._offset(value.atoms)}, {many} = count > 0 ? {words} * 16 : 0;")
            total.append(many)
            brought.append(f"if (count > 0) bring({self._place(value)}, {value.input}_ptr + ({at} - {at} % {word}), {many}, bars + slot);")
        return [*lines, f"announce(bars + slot, {' + '.join(total)});", *brought]

    def _place(self, value: Value) -> str:
        """Where an operand's columns of a chunk lie."""
        before = self.held_loads[: self.held_loads.index(value)]
        if not before:
            return "slots + slot * SLOT"
        spare = f" + {16 * len(before)}" if self.ragged else ""
        return f"slots + slot * SLOT + CHUNK * ({' + '.join(f'sizeof({self._type(v)})' for v in before)}){spare}"

    def _start(self) -> list[str]:
        return self._row_parts()

    def _loop(self, body: Sequence[str]) -> list[str]:
        wait = ["await(bars + slot, number / SLOTS % 2);"] if self._now == self._first else []
        again = (
            ["__syncwarp();", "if (lane % 32 == 0) order(number + SLOTS);  // this one has been used"] if self._now == self._last else []
        )
        return [
            "for (int chunk = 0; chunk < CHUNKS; ++chunk) {",
            "  const int number = turn * CHUNKS + chunk, slot = number % SLOTS;",
            *indented(wait),
            "#pragma unroll",
            "  for (int step = 0; step < STEPS; ++step) {",
            "    const int at = (step * 32 + lane % 32) * VECTOR, col = begin + chunk * CHUNK + at;",
            *indented(indented(body)),
            "  }",
            *indented(again),
            "}",
        ]

    def _fetch(self, value: Value) -> str:
        if value not in self.held_loads:
            kind = self._type(value)
            return f"take<{kind}, VECTOR>(reinterpret_cast<const unsigned char*>({value.input}_ptr + {self._offset(value.atoms)}))"
        # The whole row begins as far behind a word: chunks are whole words long.
        at = f"(at + ({self._offset(value.atoms)} - at) % {self._word(value)})" if self.ragged else "at"
        return f"take<{self._type(value)}, VECTOR>({self._place(value)} + {at} * sizeof({self._type(value)}))"

    def _across(self, value: Value, total: str) -> str:
        return f"across<{self.op_name(value)}>({total}, {self._neutral(value)}, {self._meeting})"

    def _store_rows(self) -> list[str]:
        return [line.replace("if (lane == 0) {", "if (rank == 0 && lane == 0) {") for line in super()._store_rows()]

    def _doc(self) -> str:
        return "The blocks of a cluster hold a row together, in shared memory; chunks of the next rows come while this one is written."

    def _grid(self) -> str:
        return ""


def slot_bytes(writer: CudaTeamWriter) -> str:
    """``SLOT`` as text for the source: bytes of a chunk of all operands in the ring."""
    items = " + ".join(f"sizeof({c_type(writer.launcher.dtypes[value.input])})" for value in writer.held_loads)
    return f"CHUNK * ({items}){f' + {writer.spare_bytes}' if writer.ragged else ''}"

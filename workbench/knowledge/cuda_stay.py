"""Writes a row program as CUDA C++ for blocks that stay on their multiprocessor and walk rows, each held in registers.

What all rows share, such as the weights of a norm, is read once a block in place of once a row: of a layer norm of rows of 8192 bfloat16
numbers that is 32 of 48 KiB through the L2. With `ahead` a block has the next row on its way, into registers of its own, while it reduces
and writes the current one, so that memory is busy whatever the block does.

What that must cost (H200, a copy reaches 4.30 TB/s): a multiprocessor's share is 33 KiB a microsecond, about what must be on its way at any
moment at a latency of a microsecond. Two blocks of 512 threads have 32 KiB of such rows on their way, beside the current ones and the
weights: more do not fit in the registers.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.knowledge.cuda_rows import CudaRowWriter
from workbench.knowledge.cuda_scope import indented
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.program import Output, Value
from workbench.knowledge.row_plan import RowPlan
from workbench.task import ITEM_BYTES


def shared_loads(plan: RowPlan) -> tuple[Value, ...]:
    """What lies along a row and is the same for all rows."""
    return tuple(value for value in plan.program.of_kind("load") if value.deps and value.deps <= set(plan.reduced))


class CudaStayWriter(CudaRowWriter):
    """The one kernel of a row program. Its grid has as many blocks as the card holds, or as there are rows.

    Args:
        ahead: the next row is asked for before the current one is reduced. It takes as many registers again.
    """

    walks = True

    def __init__(
        self, plan: RowPlan, launcher: Launcher, names: Mapping[Output, str], name: str, *, held: bool, ahead: bool, keeps: bool = True
    ) -> None:
        super().__init__(plan, launcher, names, name, held=held, several=False, keeps=keeps)
        self.ahead = ahead and held
        self.shared = [value for value in self.loads if value in shared_loads(plan)] if held else []
        self.own = [value for value in self.loads if value not in self.shared]
        self._coming = {value.id: self.vars.new(f"next_{value.input}s") for value in self.own} if self.ahead else {}
        self._ask = self.vars.new("ask")

    @property
    def held_bytes(self) -> int:
        again = sum(ITEM_BYTES[self.launcher.dtypes.get(value.input, value.dtype)] for value in self.own) if self.ahead else 0
        return super().held_bytes + again

    def _bounds(self) -> str:
        return "LANES, BLOCKS"

    def _body(self) -> list[str]:
        lines = ["const int lane = threadIdx.x;"]
        if self.held:
            lines += self._declare(self.loads, self.packs)
        if self.shared:
            lines += self._fetch_into(self.shared, self.packs)
        if self.ahead:
            lines += self._declare(self.own, self._coming)
            lines += [f"const auto {self._ask} = [&](int row) {{"]
            lines += [*indented([*self._row_parts(), *self._fetch_into(self.own, self._coming)]), "};", f"{self._ask}(blockIdx.x);"]
        row = [*self._row_parts(), *self._unconverted(self.shared), *self._work()]
        return [*lines, "for (int row = blockIdx.x; row < M; row += gridDim.x) {", *indented(row), "}"]

    def _fetch_row(self) -> list[str]:
        if not self.ahead:
            return self._fetch_into(self.own, self.packs)
        moves = [f"{self.packs[value.id]}[k] = {self._coming[value.id]}[k];" for value in self.own]
        return [
            "#pragma unroll", "for (int k = 0; k < ITEMS; ++k) {", *indented(moves), "}",
            f"if (row + int(gridDim.x) < M) {self._ask}(row + gridDim.x);  // it comes while this one is reduced",
        ]  # fmt: skip

    def _again(self) -> list[str]:
        return self._unconverted(self.own) if self.ahead else super()._again()

    def _doc(self) -> str:
        if not self.held:
            return "Blocks stay, and walk row after row."
        shared = "; what all rows share is read once" if self.shared else ""
        return f"Blocks stay, and hold row after row in registers{', the next one on its way' if self.ahead else ''}{shared}."

    def _grid(self) -> str:
        return f"min({self._rows()}, multiprocessors * blocks)"

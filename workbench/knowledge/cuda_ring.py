"""Writes a row program as CUDA C++ for blocks that stay and read row after row through a ring in shared memory.

As in `cuda_team`, the copy engine fills a ring of chunks across rows, so that loads never wait for reductions, exchanges or stores. Here a
row belongs to one block, and several blocks share a multiprocessor; and rows of which only results are written (losses, sums) need no
room for all of a row: each chunk is used once.

What that must cost (H200, a copy reaches 4.28 TB/s): the cross entropy of 4096 rows of 32000 bfloat16 numbers reads 262 MB, 61 µs. Its
131 million exponentials take 36 µs at 16 a clock of each multiprocessor, and the other 4 to 8 instructions an element 20 to 40 µs of issue
slots, beside the copies. A block a row that loads into registers takes 80 µs, since its loads pause while it reduces. Expected are 66 to
70 µs of the ring, and 90 % of the floor for softmax and norms of rows of 16 KiB.
"""

from __future__ import annotations

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_module import CudaKernel
from workbench.knowledge.cuda_rows import CudaRowWriter
from workbench.knowledge.cuda_team import CudaTeamWriter


class CudaRingWriter(CudaTeamWriter):
    """The one kernel of a row program, see `CudaTeamWriter`."""

    _meeting = "call"

    @property
    def passes(self) -> int:
        """How often a row's elements are used: a row that is used once need not be held."""
        return 1 if self._first == self._last else 2

    def _admit(self) -> None:
        if self.scans:
            raise UnsupportedError("a running sum through a ring")

    def _kernel(self) -> CudaKernel:
        return CudaKernel(self.name, self._doc(), "32 * WARPS, RESIDENT / WARPS", grid="", block=("32 * WARPS", "1"))

    def _finish(self, kernel: CudaKernel) -> None:
        CudaRowWriter._finish(self, kernel)

    def _row(self) -> str:
        return "int(blockIdx.x) + turn * int(gridDim.x)"

    def _places(self) -> list[str]:
        return [
            "const int turns = (M - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x);", "unsigned call = 0;",
            "const int begin = warp * (CHUNKS * CHUNK);  // of this warp's stretch of the row",
        ]  # fmt: skip

    def _meet(self) -> list[str]:
        return []

    def _start(self) -> list[str]:
        """What a row needs besides its elements is asked for before them: it arrives while they are added up."""
        return [*super()._start(), *self._early("load"), *self._early("gather")]

    def _store_rows(self) -> list[str]:
        return CudaRowWriter._store_rows(self)

    def _doc(self) -> str:
        return "A block stays, and reads row after row through a ring of chunks, which is filled again as soon as they have been used."

"""The last stage of a loss as CUDA C++: the block that is the last to finish makes one number of what all rows gave.

Each block draws a ticket when its rows are written; who draws the last one knows that all others are. A fence, a barrier and an atomic take
a block about a microsecond and a half in which it asks for nothing, so it is drawn once by blocks that stay, or by such that hold several
short rows, and never once a long row.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from workbench.knowledge.cuda_module import CudaKernel
from workbench.knowledge.cuda_rows import CudaRowWriter
from workbench.knowledge.cuda_scope import indented
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import call_lines
from workbench.knowledge.program import Output, Value
from workbench.knowledge.row_plan import RowPlan, Stage

MOST = 8192
"""Rows up to which one block reduces what they gave."""

EACH = 8
"""Loads of a thread that are on their way together."""

TICKET = """
// Whether this block is the last to come here: then all that the others wrote before they came is there, beyond the L1.
__device__ __forceinline__ bool comes_last(int* tickets) {
  __shared__ bool last;
  __threadfence();  // what this thread wrote is seen by whoever sees its block's ticket drawn
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicAdd(tickets, 1) == int(gridDim.x) - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// Written by other multiprocessors while this kernel runs: not to be had from the L1, and never by the read-only path.
template <typename T> __device__ __forceinline__ Pack<T, 1> fresh(const T* from) { return {{__ldcg(from)}}; }
"""

COUNTER = '''\
@functools.cache
def kept_counter(device, stream):
    return torch.zeros(1, dtype=torch.int32, device=device)


def counter(device):
    """A zero of which the blocks of a launch draw their tickets, and which the last one sets back.

    Launches of one stream follow each other. Those of two streams may run at once, and would draw each other's tickets: each stream has a
    counter of its own. So has each call that a graph captures, for the graph can be replayed on any stream.
    """
    if torch.cuda.is_current_stream_capturing():
        return torch.zeros(1, dtype=torch.int32, device=device)
    return kept_counter(device, torch.cuda.current_stream().cuda_stream)
'''


def can_be_last(found: Sequence[Stage], plans: Sequence[RowPlan]) -> bool:
    """Whether the op has one stage more than its rows', small, that makes numbers of what they gave."""
    if len(found) != 2 or plans[1].kept or plans[1].full_outputs or plans[1].length > MOST or not plans[0].kept:
        return False
    return not plans[1].program.of_kind("scan", "gather", "index") and all(output.dtype in _FRESH for output in found[0].handed)


_FRESH = frozenset({"float32", "float64", "int32", "int64"})
"""What `__ldcg` reads, of the types that stages hand on."""


class CudaLastWriter(CudaRowWriter):
    """The last stage as a device function, which all threads of one block call.

    Args:
        handed: operands that the kernel itself has written.
        width: text of the number of the block's threads.
    """

    def __init__(
        self, plan: RowPlan, launcher: Launcher, names: Mapping[Output, str], name: str, *, handed: Collection[str], width: str
    ) -> None:
        super().__init__(plan, launcher, names, name, held=False, several=False)
        self._handed, self._width = handed, width
        self._used: Sequence[Value] = ()
        self._packs_of = {value.id: self.vars.new(f"{self.packs[value.id]}_each") for value in self.loads}

    def function(self, kernel: CudaKernel) -> str:
        """The function's text, once it has been put behind what `kernel` does, see there."""
        own = self.write()
        body = [re.sub(r"\bVECTOR\b", "1", line).replace("EVEN || ", "") for line in own.body]
        arguments = [_argument(kernel, parameter) for parameter in own.parameters]
        kernel.parameters.append(("int* __restrict__", "tickets", f"counter({self.launcher.device})"))
        kernel.body += ["if (comes_last(tickets)) {", f"  {self.name}({', '.join(arguments)});"]
        kernel.body += ["  if (threadIdx.x == 0 && threadIdx.y == 0) *tickets = 0;  // for the next launch", "}"]
        taken = [f"{kind.replace(' __restrict__', '')} {name}".replace(" ", "\0") for kind, name, _ in own.parameters]
        head = [line.replace("\0", " ") for line in call_lines(f"__device__ __forceinline__ void {self.name}(", taken, ") {")]
        if head[-1] == ") {":
            head[-2] = head[-2].rstrip(",")
        return "\n".join([f"// {self._doc()}", *head, *indented(body), "}"])

    def _doc(self) -> str:
        return "What all rows gave, made one by the threads of one block, in the same order whatever the timing."

    def _start(self) -> list[str]:
        return ["const int lane = threadIdx.y * 32 + threadIdx.x;"]  # a second row of threads has 32 in each

    def _fetch(self, value: Value) -> str:
        if value.input in self._handed:
            return f"fresh({value.input}_ptr + {self._offset(value.atoms)})"
        return super()._fetch(value)

    def _refetch(self, loads: Sequence[Value]) -> list[str]:
        self._used = loads
        return [f"const Pack<{self._type(v)}, 1> {self.packs[v.id]} = {self._packs_of[v.id]}[k];" for v in loads]

    def _loop(self, body: Sequence[str]) -> list[str]:
        """All loads of a round are on their way before the first is waited for."""
        walk = ["#pragma unroll", f"for (int k = 0; k < {EACH}; ++k) {{", f"  const int col = base + k * {self._width};"]
        declared = [f"Pack<{self._type(value)}, 1> {self._packs_of[value.id]}[{EACH}];" for value in self._used]
        fetched = [f"    {self._packs_of[value.id]}[k] = {self._fetch(value)};" for value in self._used]
        inner = [*declared, *walk, "  if (col < N) {", *fetched, "  }", "}", *walk, *indented(body), "}"]
        return [f"for (int base = lane; base < N; base += {EACH} * {self._width}) {{", *indented(inner), "}"]

    def _across(self, value: Value, total: str) -> str:
        return f"across<{self.op_name(value)}, {self._width}>({total}, {self._neutral(value)})"


def last_function(
    kernel: CudaKernel, launcher: Launcher, first: Stage, stage: Stage, plan: RowPlan, names: Mapping[Output, str], name: str, width: str
) -> str:
    """Lets the last block of `kernel` do the last stage; the device function that it calls.

    Args:
        kernel: the kernel of the rows: all threads of a block have to get to its end.
        first: its stage, `stage`: the last one, `plan`: that one's.
        width: text of the number of the block's threads, at least 32.
    """
    own = {output: names[output] for output in stage.program.outputs}
    writer = CudaLastWriter(plan, launcher, own, name, handed={names[output] for output in first.handed}, width=width)
    return writer.function(kernel)


def _argument(kernel: CudaKernel, parameter: tuple[str, str, str]) -> str:
    """What the kernel calls what its launcher passes for this parameter; it gets it as one of its own where it has none."""
    kind, name, passed = parameter
    for _, known, also in kernel.parameters:
        if also == passed:
            return known
    if any(known == name for _, known, _ in kernel.parameters):
        name = f"last_{name}"
    kernel.parameters.append((kind, name, passed))
    return name

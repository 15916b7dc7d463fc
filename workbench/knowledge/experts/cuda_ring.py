"""Losses, sums, softmax and norms of rows that one block reads through a ring in shared memory, in CUDA C++."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_last import COUNTER, TICKET, can_be_last, last_function
from workbench.knowledge.cuda_module import CEIL, WIDEST, CudaKernel, assemble_cuda
from workbench.knowledge.cuda_ring import CudaRingWriter
from workbench.knowledge.cuda_row_text import REDUCE
from workbench.knowledge.cuda_team import slot_bytes
from workbench.knowledge.cuda_team_text import BY_BLOCK, ENGINE, ONLINE_BY_BLOCK, PAIR, TAKE
from workbench.knowledge.experts.base import ALGORITHM, FUSION, TRAFFIC, Expert, Match
from workbench.knowledge.experts.cuda_rows import finishing, typed_names
from workbench.knowledge.experts.cuda_team import whole_words
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Program
from workbench.knowledge.row_plan import RowPlan, Stage, plan_rows, stages
from workbench.target import get_target
from workbench.task import ITEM_BYTES, Task

CARD = """\
A block that loads a row into registers, reduces it and writes it has nothing on its way while it reduces. Here blocks stay on their
multiprocessor and read row after row through a ring of chunks in shared memory: the copy engine fills a place as soon as its chunk has been
used, across rows, so that memory is busy whatever the block does. Several blocks of few warps share a multiprocessor and reduce at
different times. Of rows that are only reduced (losses, sums) no more than the ring has to be held."""

LEAST = 4 << 10
"""Bytes of a row below which exchanges and barriers cost more than the reading."""

ROWS_EACH = 1
"""Rows of each multiprocessor, at least."""

RESIDENT = 32
"""Warps of a multiprocessor: on an H200 half as many cost 2 to 8 %."""

_KIB = 1024
_BLOCK = 1 << 10
"""Bytes of shared memory that the card keeps of each block."""


class _Kernel:
    """The ring's part of an op: its plan, launcher and writer, and what else has to be launched."""

    def __init__(self, task: Task, program: Program, online: bool) -> None:
        self.task, self.stages = task, stages(program)
        self.plans = [plan_rows(stage.program) for stage in self.stages]
        self.launcher = Launcher(
            task,
            program,
            taken=(*_TAKEN, "VECTOR", "ITEMS", "LANES", "EVEN", "vector", "items", "blocks", "held", "counter", "kept_counter"),
        )
        self.names = typed_names(self.launcher, self.stages)
        own = {output: self.names[output] for output in self.stages[0].program.outputs}
        self.writer = CudaRingWriter(self.plan, self.launcher, own, kernel_name(task), online=online)

    @property
    def plan(self) -> RowPlan:
        return self.plans[0]

    @property
    def steps(self) -> int:
        """Accesses of a thread to a chunk."""
        return 16 if self.writer.ragged else 4

    @property
    def later(self) -> list[tuple[Stage, RowPlan]]:
        return list(zip(self.stages[1:], self.plans[1:], strict=True))

    def chunk(self, steps: int) -> int:
        """Elements of a chunk."""
        return 32 * steps * self.writer.most

    def slot(self, steps: int) -> int:
        """Bytes of a chunk's place."""
        return self.writer.item_bytes * self.chunk(steps) + self.writer.spare_bytes

    def chunks(self, warps: int, steps: int) -> int:
        """Of a row, for each warp."""
        return -(-self.plan.length // (warps * self.chunk(steps)))

    def slots(self, warps: int, steps: int, resident: int) -> int:
        """Places of each warp's ring."""
        blocks = resident // warps
        return (get_target(self.task.target).block_shared_bytes // blocks - _BLOCK - 128 - 16 * warps) // (warps * (self.slot(steps) + 8))

    def holds(self, warps: int, steps: int, resident: int) -> bool:
        """Whether the ring holds what it must: a row, if that is used again, and something of the next."""
        least = 2 if self.writer.passes == 1 else self.chunks(warps, steps) + 1
        return warps <= resident and self.slots(warps, steps, resident) >= least


_TAKEN = ("WARPS", "STEPS", "RESIDENT", "chunk", "chunks", "slot", "slots", "share", "shared", "even", "k")


def _fits(task: Task, program: Program) -> Match:
    target = get_target(task.target)
    if target.backend != "cuda" or int(target.arch) < 90:
        raise UnsupportedError("the bulk copy engine needs sm_90 or newer")
    made = _Kernel(task, program, online=False)
    plan, writer = made.plan, made.writer
    if plan.length * writer.item_bytes < LEAST:
        raise UnsupportedError("rows too short for a ring")
    if max(plan.rows, 1) < ROWS_EACH * target.multiprocessors:
        raise UnsupportedError("too few rows for a block each")
    if any(program.elements(value.atoms) * ITEM_BYTES[writer.launcher.dtypes[value.input]] % 16 for value in writer.held_loads):
        raise UnsupportedError("a tensor that is no whole number of 16-byte words, through a ring")
    if any(program.elements(value.deps) >= 2**31 for value in program.values):
        raise UnsupportedError("2**31 elements or more in CUDA C++")
    if not any(_points(_best(task, program))):
        raise UnsupportedError("rows longer than a block's shared memory")
    why = f"{plan.rows} rows of {plan.length} elements, read through a ring: loads never wait"
    return Match("cuda_ring", 1.85, why)


def _best(task: Task, program: Program) -> _Kernel:
    """The kernel of the default choices."""
    with contextlib.suppress(UnsupportedError):
        return _Kernel(task, program, online=True)
    made = _Kernel(task, program, online=False)
    if made.writer.passes > 1 and not made.plan.full_outputs:
        raise UnsupportedError("reductions one after the other of rows that are not written, through a ring")
    return made


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    space: dict[str, tuple[Any, ...]] = {"cache": ("default", "stream")}
    with contextlib.suppress(UnsupportedError):
        _Kernel(task, program, online=True)
        space["online"] = ("chunk", "off") if _points(_Kernel(task, program, online=False)) else ("chunk",)
    found = stages(program)
    if can_be_last(found, [plan_rows(stage.program) for stage in found]):
        space["finish"] = ("last", "kernel")
    return space


def _points(made: _Kernel) -> list[tuple[int, int, int]]:
    """Warps of a block, accesses of a thread to a chunk, and warps of a multiprocessor: those that the shared memory holds, best first."""
    wanted = [
        (warps, steps, resident) for resident in (RESIDENT, RESIDENT // 2) for warps in (4, 8, 2, 1, 16) for steps in _steps(made, warps)
    ]
    return [point for point in wanted if made.holds(*point)]


def _steps(made: _Kernel, warps: int) -> Sequence[int]:
    """Few enough that a chunk is no longer than a warp's stretch of the row."""
    steps = made.steps
    while steps > 1 and warps * made.chunk(steps) > made.plan.length:
        steps //= 2
    return (steps, 2 * steps) if 2 * warps * made.chunk(steps) <= made.plan.length else (steps,)


def _tune(made: _Kernel) -> dict[str, list[int]]:
    points = _points(made)
    if not points:
        raise UnsupportedError("rows longer than a block's shared memory")
    return {
        name: list(dict.fromkeys(point[place] for point in points))[:3] for place, name in enumerate(("WARPS", "STEPS", "RESIDENT"))
    }  # fmt: skip


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    _fits(task, program)
    made = _Kernel(task, program, online=choices.get("online") == "chunk")
    tune = _tune(made)
    launcher, writer = made.launcher, made.writer
    kernels = [writer.write()]
    later, last = made.later, []
    if choices.get("finish") == "last":
        ((stage, plan),) = later
        last = ["#define LANES (32 * WARPS)\n", REDUCE, TICKET]
        last.append(last_function(kernels[0], launcher, made.stages[0], stage, plan, made.names, kernel_name(task, "finish"), "LANES"))
        later = []
    launches = _launch(made, kernels[0], tune)
    for stage, plan in later:
        kernel, lines = finishing(task, launcher, stage, plan, made.names)
        kernels.append(kernel)
        launches += lines
    launcher.lines += launches
    results = [launcher.returned(output, made.names[output]) for output in program.outputs]
    title = f"{task.name}: blocks read row after row through a ring that the copy engine fills, in CUDA C++."
    functions = [_DEFINES.replace("BYTES", slot_bytes(writer)), TAKE, ENGINE]
    functions += [PAIR, ONLINE_BY_BLOCK] if writer.online else []
    functions += [BY_BLOCK] if not writer.online or writer.passes > 1 else []
    functions += [REDUCE] if later else last
    helpers = (WIDEST, CEIL) if later else (CEIL, COUNTER) if last else (CEIL,)
    return assemble_cuda(task, title, tune, kernels, launcher, results, cache=choices["cache"], helpers=helpers, functions=functions)


_DEFINES = """
#define CHUNK (32 * STEPS * VECTOR)
#define SLOT int(BYTES)
#define WORDS (2 * WARPS)
#define HEAD ((8 * (WORDS + WARPS * SLOTS) + 127) / 128 * 128)
"""


def _launch(made: _Kernel, kernel: CudaKernel, tune: Mapping[str, Sequence[int]]) -> list[str]:
    """The launch; what the source is compiled for follows from the sizes of each call and from the card."""
    task, launcher, writer, plan = made.task, made.launcher, made.writer, made.plan
    length, rows = launcher.size(plan.reduced), launcher.size(plan.kept) if plan.kept else "1"
    warps, steps, resident = (tune[name][0] for name in ("WARPS", "STEPS", "RESIDENT"))
    held = dict.fromkeys(value.input for value in writer.held_loads)
    wide = dict.fromkeys([value.input for value in writer.loads] + [writer.outputs[output] for output in plan.full_outputs])
    even = plan.length == made.chunks(warps, steps) * warps * made.chunk(steps)
    kernel.macros = [
        ("VECTOR", str(writer.most), writer.most), ("WARPS", "WARPS", warps), ("STEPS", "STEPS", steps),
        ("RESIDENT", "RESIDENT", resident), ("CHUNKS", "chunks", made.chunks(warps, steps)),
        ("SLOTS", "slots", made.slots(warps, steps, resident)), ("EVEN", "even", int(even)),
    ]  # fmt: skip
    kernel.grid = f"min({rows}, multiprocessors * (RESIDENT // WARPS))"
    *compiled, launch = kernel.launch(launcher.device)
    return [
        f"if {writer.held_loads[0].input}.numel() >= 2**31 or {writer.held_loads[0].input}.numel() == 0:",
        f'    raise NotImplementedError("{task.entry}: written for tensors that have elements, fewer than 2**31")',
        *whole_words(task, writer, length, held, wide),
        f"multiprocessors = torch.cuda.get_device_properties({launcher.device}).multi_processor_count",
        f"chunk = {32 * writer.most} * STEPS",
        f"slot = {writer.item_bytes} * chunk{f' + {writer.spare_bytes}' if writer.spare_bytes else ''}  # bytes",
        f"chunks = ceil_div({length}, WARPS * chunk)",
        f"share = {get_target(task.target).block_shared_bytes} // (RESIDENT // WARPS) - {_BLOCK}  # of the memory of a multiprocessor",
        "slots = (share - 128 - 16 * WARPS) // (WARPS * (slot + 8))",
        f"if slots < {'2' if writer.passes == 1 else 'chunks + 1'}:",
        f'    raise NotImplementedError("{task.entry}: written for rows that the shared memory of a block holds")',
        "shared = ceil_div(8 * (2 * WARPS + WARPS * slots), 128) * 128 + WARPS * slots * slot",
        f"even = int({length} == WARPS * chunks * chunk)",
        *compiled, "k.set_shared_memory_config(shared)", launch.removesuffix(")") + ", shared_mem=shared)",
    ]  # fmt: skip


CUDA_RING = Expert(
    "cuda_ring", CARD, _fits, _choices, _write, roles={"cache": TRAFFIC, "online": ALGORITHM, "finish": FUSION}, backend="cuda",
    reasons={
        ("cache", "default"): "no cache hints",
        ("cache", "stream"): "results are marked to leave the cache first",
        ("finish", "last"): "the block that is the last to finish makes the last sum: nothing is launched after the rows",
        ("finish", "kernel"): "a small kernel makes the last sum, when all rows are done",
        ("online", "chunk"): "maximum and sum in one pass as chunks arrive, rescaled once a chunk, and by one exchange",
        ("online", "off"): "maximum first, then the sum: no rescaling, at the price of a pass and an exchange more",
    },
)  # fmt: skip

"""Few and long rows in CUDA C++: many blocks share each row, in two kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_module import CEIL, WIDEST, CudaKernel, assemble_cuda
from workbench.knowledge.cuda_row_text import REDUCE
from workbench.knowledge.cuda_rows import fitting
from workbench.knowledge.cuda_split import SHARES, CudaSplitWriter
from workbench.knowledge.cuda_team_text import TAKE
from workbench.knowledge.experts.base import TRAFFIC, Expert, Match
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Output, Program
from workbench.knowledge.row_plan import RowPlan, plan_rows
from workbench.target import get_target
from workbench.task import ITEM_BYTES, Task

CARD = """\
Few rows that are long fill the card only if many blocks share each. The first kernel reduces every tile of a row in registers, exactly as a
whole row would be, and leaves two numbers a tile; the second combines them, always in the same order, and writes the results. It walks the
tiles backwards, so that what the first kernel read last still lies in the cache of the card, and blocks that run together work on the same
columns of different rows, so that weights are read from memory once."""

LEAST = 16384
"""Elements of a row from which it is worth sharing."""

MOST_TILES = 4096
"""Tiles of a row that is written: every block of the second kernel reads the shares of them all."""


def _plan(program: Program) -> RowPlan:
    plan = plan_rows(program)
    if plan.program.of_kind("scan"):
        raise UnsupportedError("a running sum of rows that are split")
    return plan


def _fits(task: Task, program: Program) -> Match:
    plan = _plan(program)
    rows, processors = max(plan.rows, 1), get_target(task.target).multiprocessors
    if plan.length < LEAST or rows > 4 * processors:
        raise UnsupportedError("rows that are short, or enough to fill the card with a block each")
    if any(program.elements(value.deps) >= 2**31 for value in program.values):
        raise UnsupportedError("2**31 elements or more in CUDA C++")
    _writer(task, program)
    lanes, items = _first_tile(plan)
    if plan.full_outputs and plan.length > MOST_TILES * lanes * items * 16 // _item_bytes(plan):
        raise UnsupportedError("rows so long that the shares of their tiles cost as much as the row")
    few = rows < processors // 2
    what = "is read twice and written once" if plan.full_outputs else "is read once"
    return Match("cuda_split", 2.4 if few else 1.1, f"{rows} rows of {plan.length} elements: many blocks share a row, which {what}")


def _writer(task: Task, program: Program) -> tuple[RowPlan, Launcher, CudaSplitWriter]:
    plan = _plan(program)
    launcher = Launcher(
        task, program, taken=("LANES", "VECTOR", "ITEMS", "ROUNDS", "FAST", "EVEN", "vector", "tiles", "even", "shares", "k")
    )
    names: dict[Output, str] = {output: launcher.allocate(output, "out") for output in program.outputs}
    return plan, launcher, CudaSplitWriter(plan, launcher, names, kernel_name(task))


def _item_bytes(plan: RowPlan) -> int:
    """Of the narrowest operand along a row: 16 bytes of it are one thread's access."""
    return min((ITEM_BYTES[access.dtype] for access in plan.program.accesses), default=4)


def _first_tile(plan: RowPlan) -> tuple[int, int]:
    """Threads and accesses of the first tile that is tried."""
    # Where nothing is written along the row, larger tiles leave the second kernel less to read.
    return (512, 4) if plan.full_outputs else (256, 8)


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    # Measured on rows of 16 MiB that are read twice: what the first kernel left in the L2 is worth more than any hint.
    return {"cache": ("default", "stream") if _plan(program).full_outputs else ("stream", "default")}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    _fits(task, program)
    plan, launcher, writer = _writer(task, program)
    lanes, items = _first_tile(plan)
    tune = {"LANES": [lanes, *(size for size in (256, 512, 128) if size != lanes)], "ITEMS": [items, *(n for n in (8, 4, 2) if n != items)]}
    if not plan.full_outputs:
        tune["ITEMS"] = [8, 4, 16]
    if plan.full_outputs:
        tune |= {"ROUNDS": [2, 4, 8], "FAST": [1, 0]}
    kernels = (writer.partial(kernel_name(task, "shares")), writer.finish(kernel_name(task)))
    launcher.lines += _launch(task, launcher, writer, kernels, plan, tune)
    results = [launcher.returned(output, writer.outputs[output]) for output in program.outputs]
    title = f"{task.name}: many blocks share each row; the statistics of their tiles are combined by a second kernel, in CUDA C++."
    return assemble_cuda(
        task, title, tune, kernels, launcher, results, cache=choices["cache"], helpers=(WIDEST, CEIL), functions=(SHARES, TAKE, REDUCE)
    )  # fmt: skip


def _launch(
    task: Task, launcher: Launcher, writer: CudaSplitWriter, kernels: tuple[CudaKernel, CudaKernel], plan: RowPlan,
    tune: Mapping[str, list[int]],
) -> list[str]:  # fmt: skip
    length, rows = launcher.size(plan.reduced), launcher.size(plan.kept) if plan.kept else "1"
    wide = dict.fromkeys([value.input for value in writer.loads] + [writer.outputs[output] for output in plan.full_outputs])
    largest = max(writer.loads, key=lambda value: plan.program.elements(value.atoms)).input
    vector = fitting(writer.most, plan.length)
    lanes, items = tune["LANES"][0], tune["ITEMS"][0]
    full = bool(plan.full_outputs)
    even = plan.length % (lanes * vector * items * tune.get("ROUNDS", [1])[0]) == 0
    macros = [
        ("VECTOR", "vector", vector), ("LANES", "LANES", lanes), ("ITEMS", "ITEMS", items),
        ("ROUNDS", "ROUNDS" if full else "1", tune.get("ROUNDS", [1])[0]), ("FAST", "FAST" if full else "1", 1),
        ("EVEN", "even", int(even)),
    ]  # fmt: skip
    first, second = kernels
    first.macros = second.macros = macros
    first.grid = f"tiles * {rows}"
    second.grid = f"ceil_div(tiles, ROUNDS) * {rows}" if full else rows
    covers = "ROUNDS * LANES * ITEMS * vector" if full else "LANES * ITEMS * vector"
    return [
        f"if {largest}.numel() >= 2**31 or {largest}.numel() == 0:",
        f'    raise NotImplementedError("{task.entry}: written for tensors that have elements, fewer than 2**31")',
        f"vector = widest({writer.most}, {length}, {', '.join(wide)})",
        f"tiles = ceil_div({length}, LANES * ITEMS * vector)",
        f"even = int({length} % ({covers}) == 0)",
        f"shares = torch.empty(({rows} * tiles, {writer.words}), dtype=torch.float32, device={launcher.device})",
        *first.launch(launcher.device),
        *second.launch(launcher.device),
    ]


CUDA_SPLIT = Expert(
    "cuda_split", CARD, _fits, _choices, _write, roles={"cache": TRAFFIC}, backend="cuda",
    reasons={
        ("cache", "stream"): "the second read and the results are marked to leave the cache first, so that what is still to be read stays",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip

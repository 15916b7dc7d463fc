"""Softmax and norms of rows that no single block can hold, in CUDA C++: a cluster of blocks keeps them in shared memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_module import CEIL, CudaKernel, assemble_cuda
from workbench.knowledge.cuda_team import CudaTeamWriter, slot_bytes
from workbench.knowledge.cuda_team_text import BY_CLUSTER, ENGINE, ONLINE_BY_CLUSTER, PAIR, TAKE
from workbench.knowledge.experts.base import ALGORITHM, TRAFFIC, Expert, Match
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Output, Program
from workbench.knowledge.row_plan import RowPlan, plan_rows
from workbench.target import get_target
from workbench.task import ITEM_BYTES, Task

CARD = """\
A row too long for one block's registers is read twice by most kernels, because its statistics are needed before its first result. Here the
blocks of a cluster hold it together in shared memory and exchange their shares of each statistic through each other's. The copy engine
brings the row in chunks, and a chunk's place is filled with one of the next row as soon as its results are written: loads, reductions and
stores overlap, and each element is read once and written once. Shorter rows are faster in one block's registers; few rows don't fill the
card with clusters."""

LEAST = 56 << 10
"""Bytes of a row up to which a block's registers hold it well, and a second one's beside it."""

_REGISTERS = 160 << 10
"""Bytes of a row up to which one block's registers hold it at all: up to here a team is the second thing to try."""

_KIB = 1024
_WARPS = 16


def _steps(writer: CudaTeamWriter) -> int:
    """Accesses of a thread to a chunk: as many bytes, whatever the width of one."""
    return 16 if writer.ragged else 4


def _writer(task: Task, program: Program, online: bool = False) -> tuple[RowPlan, Launcher, CudaTeamWriter]:
    plan = plan_rows(program)
    launcher = Launcher(
        task, program, taken=("TEAM", "WARPS", "STEPS", "ROOM", "EACH", "chunk", "chunks", "slot", "slots", "shared", "even", "k")
    )
    names: dict[Output, str] = {output: launcher.allocate(output, "out") for output in program.outputs}
    return plan, launcher, CudaTeamWriter(plan, launcher, names, kernel_name(task), online=online)


def _chunks(plan: RowPlan, writer: CudaTeamWriter, blocks: int) -> int:
    """Chunks of each warp, where so many blocks share a row."""
    return -(-plan.length // (blocks * _WARPS * 32 * _steps(writer) * writer.most))


def _bytes_held(plan: RowPlan, writer: CudaTeamWriter, blocks: int) -> int:
    return _chunks(plan, writer, blocks) * _WARPS * (32 * _steps(writer) * writer.most * writer.item_bytes + writer.spare_bytes)


def _fits(task: Task, program: Program) -> Match:
    target = get_target(task.target)
    if target.backend != "cuda" or int(target.arch) < 90:
        raise UnsupportedError("clusters and the bulk copy engine need sm_90 or newer")
    plan, _, writer = _writer(task, program)
    if plan.length * writer.item_bytes <= LEAST:
        raise UnsupportedError("rows short enough for the registers of a block")
    if any(program.elements(value.atoms) * ITEM_BYTES[writer.launcher.dtypes[value.input]] % 16 for value in writer.held_loads):
        raise UnsupportedError("a tensor that is no whole number of 16-byte words, in the memory of a cluster")
    if _bytes_held(plan, writer, 8) > target.block_shared_bytes - 4 * _KIB:
        raise UnsupportedError("rows longer than a cluster's shared memory")
    if any(program.elements(value.deps) >= 2**31 for value in program.values):
        raise UnsupportedError("2**31 elements or more in CUDA C++")
    fills = max(plan.rows, 1) * 8 >= 2 * target.multiprocessors
    why = f"{max(plan.rows, 1)} rows of {plan.length} elements: a cluster holds a row in shared memory, which is read once"
    return Match("cuda_team", 2.5 if fills and plan.length * writer.item_bytes > _REGISTERS else 1.2, why)


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    space: dict[str, tuple[Any, ...]] = {"cache": ("default", "stream")}
    with contextlib.suppress(UnsupportedError):
        _writer(task, program, online=True)
        space["online"] = ("chunk", "off")  # measured on rows of 1.5 MiB: 93 and 88 % of the floor
    return space


def _tune(task: Task, plan: RowPlan, writer: CudaTeamWriter) -> dict[str, list[int]]:
    target = get_target(task.target)
    whole = target.block_shared_bytes // _KIB
    teams = [team for team in (1, 2, 4, 8) if _bytes_held(plan, writer, team) <= (whole - 4) * _KIB]
    rooms = [whole, whole // 2]
    halves = [team for team in teams if _bytes_held(plan, writer, team) <= (whole // 2 - 4) * _KIB]
    shared = any(plan.along_row(value) and not plan.is_full(value) for value in writer.loads)
    if halves and (halves[0] == 1 or shared or not writer.pairs):
        # Two blocks on a multiprocessor: one waits for the other's exchange, or for weights, while the copies of both go on.
        teams, rooms = [*halves, *(team for team in teams if team not in halves)], rooms[::-1]
    # Else the fewest blocks have the fewest exchanges, and what is left of their memory already holds much of the next row.
    many = max(plan.rows, 1) * teams[0] >= 64 * target.multiprocessors  # so that a last wave of clusters does not show
    return {
        "TEAM": teams[:3],
        "EACH": [16, 4, 2] if many else [4, 16, 2],
        "WARPS": [16, 8],
        "ROOM": rooms,
        "STEPS": [_steps(writer), 2 * _steps(writer)],
    }


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    _fits(task, program)
    plan, launcher, writer = _writer(task, program, choices.get("online") == "chunk")
    tune = _tune(task, plan, writer)
    kernel = writer.write()
    launcher.lines += _launch(task, launcher, writer, kernel, plan, tune)
    results = [launcher.returned(output, writer.outputs[output]) for output in program.outputs]
    title = f"{task.name}: each row is held by a cluster of blocks between its one read and its write, in CUDA C++."
    functions = [_defines(writer), TAKE, ENGINE, *((PAIR, ONLINE_BY_CLUSTER) if writer.online else (BY_CLUSTER,))]
    return assemble_cuda(task, title, tune, [kernel], launcher, results, cache=choices["cache"], helpers=(CEIL,), functions=functions)


def _defines(writer: CudaTeamWriter) -> str:
    return f"""
#define CHUNK (32 * STEPS * VECTOR)
#define SLOT int({slot_bytes(writer)})
#define WORDS (2 * TEAM * WARPS)
#define HEAD ((8 * (WORDS + WARPS * SLOTS) + 127) / 128 * 128)
"""


def _launch(
    task: Task, launcher: Launcher, writer: CudaTeamWriter, kernel: CudaKernel, plan: RowPlan, tune: Mapping[str, list[int]]
) -> list[str]:  # fmt: skip
    """The launch; what the source is compiled for follows from the sizes of each call and from the card."""
    length, rows = launcher.size(plan.reduced), launcher.size(plan.kept) if plan.kept else "1"
    vector, item, spare, steps = writer.most, writer.item_bytes, writer.spare_bytes, _steps(writer)
    held = dict.fromkeys(value.input for value in writer.held_loads)
    wide = dict.fromkeys([value.input for value in writer.loads] + [writer.outputs[output] for output in plan.full_outputs])
    largest = writer.held_loads[0].input
    blocks = tune["TEAM"][0]
    chunks = _chunks(plan, writer, blocks)
    slot = item * 32 * steps * vector + spare
    slots = min(2 * chunks, (tune["ROOM"][0] * _KIB - 128 - 16 * blocks * _WARPS) // (_WARPS * (slot + 8)))
    even = plan.length == blocks * chunks * _WARPS * 32 * steps * vector
    kernel.macros = [
        ("VECTOR", str(vector), vector), ("TEAM", "TEAM", blocks), ("WARPS", "WARPS", _WARPS), ("STEPS", "STEPS", steps),
        ("CHUNKS", "chunks", chunks), ("SLOTS", "slots", slots), ("EVEN", "even", int(even)),
    ]  # fmt: skip
    kernel.grid = f"ceil_div({rows}, each) * TEAM"
    *compiled, launch = kernel.launch(launcher.device)
    return [
        f"if {largest}.numel() >= 2**31 or {largest}.numel() == 0:",
        f'    raise NotImplementedError("{task.entry}: written for tensors that have elements, fewer than 2**31")',
        *whole_words(task, writer, length, held, wide),
        f"multiprocessors = torch.cuda.get_device_properties({launcher.device}).multi_processor_count",
        f"chunk = {32 * vector} * STEPS",
        f"slot = {item} * chunk{f' + {spare}' if spare else ''}  # bytes",
        f"chunks = ceil_div({length}, TEAM * WARPS * chunk)",
        "slots = min(2 * chunks, (ROOM * 1024 - 128 - 16 * TEAM * WARPS) // (WARPS * (slot + 8)))",
        "if slots < chunks:",
        f'    raise NotImplementedError("{task.entry}: written for rows that the shared memory of a cluster holds")',
        "shared = ceil_div(8 * (2 * TEAM * WARPS + WARPS * slots), 128) * 128 + WARPS * slots * slot",
        f"even = int({length} == TEAM * WARPS * chunks * chunk)",
        f"each = max(1, min(EACH, {rows} // max(1, multiprocessors // TEAM)))  # rows of a cluster",
        *compiled, "k.set_shared_memory_config(shared)", launch.removesuffix(")") + ", shared_mem=shared)",
    ]  # fmt: skip


def whole_words(task: Task, writer: CudaTeamWriter, length: str, held: Iterable[str], wide: Iterable[str]) -> list[str]:
    """The launcher's refusal of tensors that the copy engine, or accesses of 16 bytes, can't read: operands of the ring, and all others."""
    if writer.ragged:
        return [
            f"if any(t.data_ptr() % 16 or t.nbytes % 16 for t in ({', '.join(held)},)):",
            f'    raise NotImplementedError("{task.entry}: written for tensors of whole 16-byte words")',
        ]
    least = min(ITEM_BYTES[writer.launcher.dtypes[name]] for name in held)
    return [
        f"if {length} % {max(writer.most, 16 // least)} or any(t.data_ptr() % 16 for t in ({', '.join(wide)},)):",
        f'    raise NotImplementedError("{task.entry}: written for rows of whole 16-byte words")',
    ]


CUDA_TEAM = Expert(
    "cuda_team", CARD, _fits, _choices, _write, roles={"cache": TRAFFIC, "online": ALGORITHM}, backend="cuda",
    reasons={
        ("cache", "default"): "no cache hints",
        ("online", "chunk"): "maximum and sum in one pass as chunks arrive, rescaled once a chunk, and by one exchange over the cluster",
        ("online", "off"): "maximum first, then the sum: no rescaling, at the price of a pass and an exchange more",
        ("cache", "stream"): "results are marked to leave the cache first, so that weights stay",
    },
)  # fmt: skip

"""Softmax and norms of rows that no single block can hold, in CUDA C++: a team of blocks keeps them in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_module import CEIL, CudaKernel, assemble_cuda
from workbench.knowledge.cuda_team import CudaTeamWriter, slot_bytes
from workbench.knowledge.cuda_team_text import BY_CARD, BY_CLUSTER, ENGINE
from workbench.knowledge.experts.base import FUSION, TRAFFIC, Expert, Match
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Output, Program
from workbench.knowledge.row_plan import RowPlan, plan_rows
from workbench.target import get_target
from workbench.task import ITEM_BYTES, Task

CARD = """\
A row too long for one block's registers is read twice by most kernels, because its statistics are needed before its first result. Here the
blocks of a cluster hold it together in shared memory and exchange their shares of each statistic through each other's; rows too long even
for eight blocks are held by all blocks of the card, which exchange words in global memory. The copy engine brings the row in chunks, and a
chunk's place is filled with one of the next row as soon as its results are written: loads, reductions and stores overlap, and each element
is read once and written once. A team of the whole card needs all its blocks running at once: launch it on one stream at a time."""

LEAST_BYTES = 32768
"""Shorter rows are held in a block's registers."""

_KIB = 1024
_WARPS = 16
_STEPS = 4


def _writer(task: Task, program: Program, card: bool) -> tuple[RowPlan, Launcher, CudaTeamWriter]:
    plan = plan_rows(program)
    launcher = Launcher(task, program, taken=("TEAM", "WARPS", "STEPS", "ROOM", "EACH", "chunk", "chunks", "slots", "shared", "even", "k"))
    names: dict[Output, str] = {output: launcher.allocate(output, "out") for output in program.outputs}
    return plan, launcher, CudaTeamWriter(plan, launcher, names, kernel_name(task), card=card)


def _chunks(plan: RowPlan, writer: CudaTeamWriter, blocks: int) -> int:
    """Chunks of each warp, where so many blocks share a row."""
    return -(-plan.length // (blocks * _WARPS * 32 * _STEPS * writer.most))


def _bytes_held(plan: RowPlan, writer: CudaTeamWriter, blocks: int) -> int:
    return _chunks(plan, writer, blocks) * _WARPS * 32 * _STEPS * writer.most * writer.item_bytes


def _teams(task: Task, program: Program) -> tuple[str, ...]:
    """The kinds of team that can hold a row, the better first.

    Raises:
        UnsupportedError: none can, or none is of use.
    """
    target = get_target(task.target)
    if target.backend != "cuda" or int(target.arch) < 90:
        raise UnsupportedError("clusters and the bulk copy engine need sm_90 or newer")
    plan, _, writer = _writer(task, program, card=False)
    if plan.length * writer.item_bytes < LEAST_BYTES:
        raise UnsupportedError("rows short enough for the registers of a block")
    if plan.length % writer.most or any(plan.length * ITEM_BYTES[writer.launcher.dtypes[v.input]] % 16 for v in writer.held_loads):
        raise UnsupportedError("rows that are no whole number of 16-byte words, in the memory of a team of blocks")
    room = target.block_shared_bytes - 4 * _KIB
    found = []
    if _bytes_held(plan, writer, 8) <= room:
        found.append("cluster")
    few = max(plan.rows, 1) * 8 < 2 * target.multiprocessors  # clusters of all rows at once leave much of the card idle
    if (not found or few) and _bytes_held(plan, writer, target.multiprocessors) <= room:
        found.insert(0 if few else len(found), "card")
    if not found:
        raise UnsupportedError("rows longer than all shared memory of the card")
    return tuple(found)


def _fits(task: Task, program: Program) -> Match:
    teams = _teams(task, program)
    plan = plan_rows(program)
    long = plan.length > 65536
    who = "all blocks of the card hold" if teams[0] == "card" else "a cluster holds"
    return Match("cuda_team", 2.5 if long else 1.2, f"{max(plan.rows, 1)} rows of {plan.length} elements: {who} a row in shared memory")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return {"team": _teams(task, program), "cache": ("stream", "default")}


def _tune(task: Task, plan: RowPlan, writer: CudaTeamWriter) -> dict[str, list[int]]:
    target = get_target(task.target)
    whole = target.block_shared_bytes // _KIB
    if writer.card:
        return {"STEPS": [4, 8], "WARPS": [16, 8], "ROOM": [whole]}
    fits = [team for team in (1, 2, 4, 8) if _bytes_held(plan, writer, team) <= (whole - 4) * _KIB]
    # Two blocks a multiprocessor overlap each other's pauses, where half the memory holds a share.
    halves = [team for team in fits if _bytes_held(plan, writer, team) <= (whole // 2 - 4) * _KIB]
    best = (halves or fits)[0]
    teams = [best, *(team for team in fits if team != best)]
    rooms = [whole // 2, whole] if best in halves else [whole]
    return {"TEAM": teams, "ROOM": rooms, "WARPS": [16, 8], "STEPS": [4, 8], "EACH": [16, 4, 64]}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    if choices["team"] not in _teams(task, program):
        raise UnsupportedError(f"a team of the {choices['team']} for rows of this length")
    if any(program.elements(value.deps) >= 2**31 for value in program.values):
        raise UnsupportedError("2**31 elements or more in CUDA C++")
    card = choices["team"] == "card"
    plan, launcher, writer = _writer(task, program, card)
    tune = _tune(task, plan, writer)
    kernel = writer.write()
    launcher.lines += _launch(task, launcher, writer, kernel, plan, tune)
    results = [launcher.returned(output, writer.outputs[output]) for output in program.outputs]
    title = f"{task.name}: each row is held by a team of blocks between its one read and its write, in CUDA C++."
    functions = [_defines(writer), ENGINE, BY_CARD if card else BY_CLUSTER]
    return assemble_cuda(task, title, tune, [kernel], launcher, results, cache=choices["cache"], helpers=(CEIL,), functions=functions)


def _defines(writer: CudaTeamWriter) -> str:
    words = "34" if writer.card else "(2 * TEAM * WARPS)"
    return f"""
#define REDUCES {writer.reduces}
#define CHUNK (32 * STEPS * VECTOR)
#define SLOT int(CHUNK * ({slot_bytes(writer)}))
#define WORDS {words}
#define HEAD ((8 * (WORDS + WARPS * SLOTS) + 127) / 128 * 128)
"""


def _launch(
    task: Task, launcher: Launcher, writer: CudaTeamWriter, kernel: CudaKernel, plan: RowPlan, tune: Mapping[str, list[int]]
) -> list[str]:  # fmt: skip
    """The launch; what the source is compiled for follows from the sizes of each call and from the card."""
    length, rows = launcher.size(plan.reduced), launcher.size(plan.kept) if plan.kept else "1"
    vector, bytes_each = writer.most, writer.item_bytes
    wide = [value.input for value in writer.loads] + [writer.outputs[output] for output in plan.full_outputs]
    largest = writer.held_loads[0].input
    device = launcher.device
    team, words = ("team", "34") if writer.card else ("TEAM", "2 * TEAM * WARPS")
    lines = [
        f"if {largest}.numel() >= 2**31 or {largest}.numel() == 0:",
        f'    raise NotImplementedError("{task.entry}: written for tensors that have elements, fewer than 2**31")',
        f"if {length} % {max(vector, 16 // _least_bytes(writer))} or any(t.data_ptr() % 16 for t in ({', '.join(dict.fromkeys(wide))},)):",
        f'    raise NotImplementedError("{task.entry}: written for rows of whole 16-byte words")',
        f"multiprocessors = torch.cuda.get_device_properties({device}).multi_processor_count",
        f"chunk = {32 * vector} * STEPS",
        f"chunks = ceil_div({length}, {'multiprocessors' if writer.card else 'TEAM'} * WARPS * chunk)",
    ]
    if writer.card:
        lines.append(f"team = ceil_div({length}, chunks * WARPS * chunk)")
    lines += [
        f"slots = min(2 * chunks, (ROOM * 1024 - 128 - 8 * ({words})) // (WARPS * ({bytes_each} * chunk + 8)))",
        "if slots < chunks:",
        f'    raise NotImplementedError("{task.entry}: written for rows that the shared memory of a team of blocks holds")',
        f"shared = ceil_div(8 * ({words} + WARPS * slots), 128) * 128 + WARPS * slots * {bytes_each} * chunk",
        f"even = int({length} == {team} * WARPS * chunks * chunk)",
    ]
    blocks = get_target(task.target).multiprocessors if writer.card else tune["TEAM"][0]
    chunks = _chunks(plan, writer, blocks)
    layer = _WARPS * 32 * _STEPS * vector
    if writer.card:
        blocks = -(-plan.length // (chunks * layer))
        lines.append(f"board = torch.zeros({rows} * {max(writer.reduces, 1)} * team, dtype=torch.int64, device={device})")
        grid = "team"
    else:
        lines.append(f"each = max(1, min(EACH, {rows} // max(1, multiprocessors // TEAM)))  # rows of a cluster")
        grid = f"ceil_div({rows}, each) * TEAM"
    slots = min(2 * chunks, (tune["ROOM"][0] * _KIB - 128 - 8 * (34 if writer.card else 2 * blocks * _WARPS)) // (
        _WARPS * (bytes_each * 32 * _STEPS * vector + 8)))  # fmt: skip
    kernel.macros = [
        ("VECTOR", str(vector), vector), ("TEAM", team, blocks), ("WARPS", "WARPS", _WARPS), ("STEPS", "STEPS", _STEPS),
        ("CHUNKS", "chunks", chunks), ("SLOTS", "slots", slots), ("EVEN", "even", int(plan.length == blocks * chunks * layer)),
    ]  # fmt: skip
    kernel.grid = grid
    launch = kernel.launch(device)
    launch[-1] = launch[-1].removesuffix(")") + ", shared_mem=shared)"
    return [*lines, *launch[:-1], "k.set_shared_memory_config(shared)", launch[-1]]


def _least_bytes(writer: CudaTeamWriter) -> int:
    return min(ITEM_BYTES[writer.launcher.dtypes[value.input]] for value in writer.held_loads)


CUDA_TEAM = Expert(
    "cuda_team", CARD, _fits, _choices, _write, roles={"team": FUSION, "cache": TRAFFIC}, backend="cuda",
    reasons={
        ("team", "cluster"): "the blocks of a cluster hold a row together and exchange statistics through shared memory: one read",
        ("team", "card"): "all blocks of the card hold a row together and exchange statistics in global memory: one read",
        ("cache", "stream"): "results are marked to leave the cache first, so that weights stay",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip

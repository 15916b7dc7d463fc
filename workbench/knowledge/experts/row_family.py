"""What the experts on rows share: the structural choices that a row program has at its sizes, and the module around its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts.base import ALGORITHM, FUSION, TILES, TRAFFIC
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import assemble, kernel_name
from workbench.knowledge.program import Output, Program
from workbench.knowledge.row_plan import RowPlan, Stage, plan_rows, stages
from workbench.knowledge.row_writer import RowWriter
from workbench.knowledge.scope import Needs
from workbench.target import get_target
from workbench.task import ITEM_BYTES, Task

ROLES = {
    "passes": FUSION, "grid": FUSION, "cache": TRAFFIC, "prefetch": TRAFFIC, "rows": TILES, "online": ALGORITHM, "statistics": ALGORITHM,
}  # fmt: skip

REASONS = {
    ("passes", "row"): "a program holds whole rows in registers, so that each element is read once",
    ("passes", "loop"): "a program walks its row block by block, so that few registers do for any length; later passes read the cache",
    ("passes", "split"): "several programs share each row, which fills the card when rows are few and long",
    ("rows", "one"): "one row a program: no row waits for another",
    ("rows", "several"): "several rows a program, so that short rows still fill the vector lanes",
    ("grid", "one"): "one program for each piece of work, which the hardware balances",
    ("grid", "persistent"): "as many programs as the card holds, each fetching its next rows while it computes the current ones",
    ("cache", "default"): "no cache hints",
    ("cache", "stream"): "data that is not needed again is marked to leave the cache first, and what is read again to stay",
    ("prefetch", "plain"): "loads are left to the compiler's order",
    ("prefetch", "pipelined"): "the next blocks are copied to shared memory while the current one is reduced",
    ("online", "block"): "maximum and sum in one pass, rescaled once a block: one exponential an element",
    ("online", "lanes"): "maximum and sum in one pass, each lane with its own maximum: no block waits for a reduction across lanes",
    ("online", "off"): "maximum first, then the sum: no rescaling, at the price of one more read",
    ("statistics", "welford"): "mean and variance in one pass, merged exactly",
    ("statistics", "two_pass"): "mean first, then the deviations from it: less arithmetic, one more read",
}  # fmt: skip


def plans(program: Program) -> tuple[RowPlan, ...]:
    """The plan of each stage, the largest first."""
    return tuple(plan_rows(stage.program) for stage in stages(program))


def row_choices(task: Task, plan: RowPlan) -> dict[str, tuple[Any, ...]]:
    """The structures that make sense at these sizes, the most promising first."""
    length, rows = plan.length, max(plan.rows, 1)
    lanes = 1 << (length - 1).bit_length()
    one_pass = len(plan.tracks(True, True)) == 1
    room = 32768 if plan.contiguous else 512
    passes = []
    if lanes <= 2 * room:
        passes.append("row")
    scans = bool(plan.program.of_kind("scan"))
    if lanes >= 256 or not passes:
        passes.append("loop")
    splits = one_pass and not scans and length >= 1024
    programs = rows if plan.contiguous else max(rows // 64, 1)
    processors = get_target(task.target).multiprocessors
    # More rows than the card holds programs fill it by themselves.
    uneven = length >= 1 << 20 and programs < 8 * processors  # a last wave of such programs that is half empty shows
    if splits and (programs < 4 * processors or uneven):
        passes.append("split")
    tracks = [track.kind for found in plan.tracks(True, True) for track in found]
    read_once = plan.contiguous and not plan.full_outputs and lanes >= 8192 and set(tracks) == {"online"}
    if "split" in passes and (uneven or programs < processors) and length >= 8192:
        passes = ["split", *(name for name in passes if name != "split")]
        if uneven and programs * 8 <= processors:
            passes = [name for name in passes if name != "loop"]  # nearly the whole card would wait, for tenths of a second
    elif (lanes > room or read_once or (scans and lanes >= 16384)) and "loop" in passes:
        # Where nothing is written along the row, or a running sum is carried on, a loop reads it once too, and its programs are small.
        passes = ["loop", *(name for name in passes if name != "loop")]
    space: dict[str, tuple[Any, ...]] = {"passes": tuple(passes)}
    if not plan.kept:
        space["rows"] = ("one",)
    elif not plan.contiguous:
        space["rows"] = ("several",)
    else:
        space["rows"] = ("several", "one") if lanes <= 1024 else ("one", "several") if lanes <= 4096 else ("one",)
        if plan.rows >= 4 and _shares(plan, 65536):
            # What all rows share, such as weights, is too long for the L1: several rows take it from the L2 together.
            space["rows"] = ("several", "one")
    space["cache"] = ("default", "stream")
    looped = len(passes) > 1 or passes[0] != "row"
    if looped and "online" in tracks:
        space["online"] = ("block", "lanes", "off") if not plan.contiguous else ("lanes", "block") if lanes > 1024 else ("block", "lanes")
    if looped and "moments" in tracks:
        space["statistics"] = ("welford", "two_pass")
    # These have rarely won where they were measured: last, so that a short search meets them last.
    space["grid"] = ("one", "persistent") if "row" in passes and plan.kept else ("one",)
    if looped:
        space["prefetch"] = ("plain", "pipelined")
    return space


def row_tune(task: Task, plan: RowPlan, choices: Mapping[str, Any]) -> dict[str, list[int]]:
    """The numbers to try, for the captured sizes, the most promising first."""
    most = 1024 // get_target(task.target).warp_size
    item = max((ITEM_BYTES.get(access.dtype, 4) for access in plan.program.accesses if _is_big(plan, access.input)), default=4)
    lanes = 1 << (plan.length - 1).bit_length()
    several = choices["rows"] == "several"
    tune: dict[str, list[int]] = {}
    per_thread = 64 // item if plan.contiguous else 32
    if plan.contiguous and any(plan.along_row(value) and not plan.is_full(value) for value in plan.program.of_kind("load")):
        per_thread //= 2  # weights along the row take registers too
    if choices["passes"] == "row":
        elements = lanes
        if several:
            block = 4096 if plan.contiguous else 8192
            best = max(1, min(block // lanes, 128 if plan.contiguous else 256))
            best = best if plan.contiguous else max(best, 16)
            tune["ROWS"] = _around(best, 2 if plan.contiguous else 8, 512)
            elements = lanes * best
        warps = max(1, min(elements // (32 * per_thread), most))
        best, *others = _around(min(max(warps, 1 if several else 4 if lanes >= 2048 else 1), most), 1, most)
        # Of one row, more warps hold fewer elements each: more rows fit on a multiprocessor.
        tune["NUM_WARPS"] = [best, *(others if several else sorted(others, reverse=True))]
        if choices["grid"] == "persistent":
            tune["PROGRAMS"] = _around(max(1, 32 // tune["NUM_WARPS"][0]), 1, 16)
            room = 160 << 10
            bytes_once = elements * sum(ITEM_BYTES.get(access.dtype, 4) for access in plan.program.accesses if _is_big(plan, access.input))
            tune["NUM_STAGES"] = [stages for stages in (2, 3, 1, 4) if stages == 1 or stages * bytes_once <= room] or [1]
        return tune
    if several:
        tune["ROWS"] = [64, 32, 128] if not plan.contiguous else [4, 2, 8]
        tune["BLOCK"] = [32, 16, 64] if not plan.contiguous else [1024, 2048, 512] if plan.length >= 65536 else [512, 1024, 256]
        tune["NUM_WARPS"] = [4, 8]
    elif any(plan.deep(tracks, choices) for tracks in plan.tracks(True, True)):
        tune["DEPTH"] = [4, 2, 8]
        tune["NUM_WARPS"] = [8, 4, 16] if most >= 16 else [8, 4]
    else:
        tune["BLOCK"] = [size for size in (4096, 8192, 2048, 1024) if size <= max(lanes, 1024)]
        wide = most >= 16 and choices["passes"] == "loop" and lanes >= 8192
        if choices["passes"] == "loop" and plan.program.of_kind("scan"):
            # Blocks wait for each other: small programs, so that many others fill the time.
            tune["BLOCK"] = [size for size in (2048, 4096, 1024) if size <= max(lanes, 1024)]
            wide, most = False, 8
        tune["NUM_WARPS"] = [4, 8] if most == 8 else [16, 8, 4] if wide else [8, 4, 16] if most >= 16 else [8, 4]
    if choices["passes"] == "split":
        programs = max(plan.rows // (tune["ROWS"][0] if several else 1), 1)
        # So many that an uneven last wave of programs does not show.
        wanted = 1 << max(1, (get_target(task.target).multiprocessors * 16 // programs - 1).bit_length())
        blocks = max(2, plan.length // tune.get("BLOCK", [8192])[0])
        best = max(2, min(wanted, 1 << (blocks.bit_length() - 1), 2048))
        if programs * best < 4096 and plan.length >= best << 17:
            best *= 4  # so long rows that a last wave of programs that is half empty shows
        tune["SPLIT"] = _around(best, 2, 8192)
    if choices.get("prefetch") == "pipelined":
        tune["NUM_STAGES"] = [3, 2, 4]
    return tune


def named(launcher: Launcher, found: Sequence[Stage]) -> dict[Output, str]:
    """What the launcher calls each output of each stage; its lines that make them are added to it."""
    names: dict[Output, str] = {}
    for stage in found:
        for output in stage.program.outputs:
            if output not in stage.handed and output not in names:
                names[output] = launcher.allocate(output, "out")
        for output, name in stage.handed.items():
            names[output] = launcher.temporary(name, [launcher.size(output.atoms)] if output.atoms else ["1"], output.dtype)
    return names


def write_rows(task: Task, program: Program, choices: Mapping[str, Any], title: str) -> str:
    """The module of a row program, all of its stages."""
    found = stages(program)
    made = [plan_rows(stage.program) for stage in found]
    constants = ("BLOCK", "DEPTH", "VECTOR", "EVEN", "ROWS", "SPLIT", "NUM_WARPS", "NUM_STAGES", "PROGRAMS")
    launcher = Launcher(task, program, taken=(*constants, "multiprocessors", "on_gpu"))
    needs = Needs()
    names = named(launcher, found)
    big = any(program.elements(value.deps) >= 2**31 for value in program.values)
    kernels = []
    for number, (stage, plan) in enumerate(zip(found, made, strict=True)):
        own = {output: names[output] for output in stage.program.outputs}
        if number == 0:
            writer = RowWriter(plan, choices, launcher, needs, own, kernel_name(task), big)
        else:
            # What is left has one element a row: small, so its sizes are not worth tuning.
            small = "row" if plan.length <= 16384 else "split" if plan.length > 65536 and len(plan.tracks(True, True)) == 1 else "loop"
            settings = {"passes": small, "rows": "one", "grid": "one", "cache": "default", "online": "block", "statistics": "welford"}
            literal = {"BLOCK": 4096, "NUM_WARPS": 8, "SPLIT": 64}
            writer = RowWriter(plan, settings, launcher, needs, own, kernel_name(task, "finish"), literal=literal)
        passes = writer.choices["passes"]
        kernels += {"row": writer.whole_rows, "loop": writer.looped, "split": writer.split}[passes]()
    if not big:
        largest = max(
            (access for access in program.accesses), key=lambda access: program.elements(tuple(a for d in access.dims for a in d))
        )
        launcher.lines += [
            f"if {largest.input}.numel() >= 2**31:",
            f'    raise ValueError("{task.entry}: written for fewer than 2**31 elements")',
        ]
    for kernel in kernels:
        launcher.lines += kernel.launch()
    launcher.lines += [f"{counter}.add_(1)" for counter in program.counters]
    results = [launcher.returned(output, names[output]) for output in program.outputs if not output.into]
    return assemble(task, title, row_tune(task, made[0], choices), kernels, launcher, results, needs)


def check(plan: RowPlan, choices: Mapping[str, Any]) -> None:
    """Combinations that can't be written.

    Raises:
        UnsupportedError: with the reason.
    """
    if choices["passes"] == "split" and len(plan.tracks(choices.get("online") != "off", choices.get("statistics") != "two_pass")) != 1:
        raise UnsupportedError("a split row needs its statistics in one pass")


def _shares(plan: RowPlan, least: int) -> bool:
    """Whether every row reads some tensor of at least so many elements along with its own."""
    along = (value for value in plan.program.of_kind("load") if plan.along_row(value) and not plan.is_full(value))
    return any(plan.program.elements(value.atoms) >= least for value in along)


def _is_big(plan: RowPlan, name: str) -> bool:
    return any(value.input == name and plan.is_full(value) for value in plan.program.of_kind("load"))


def _around(best: int, least: int, most: int) -> list[int]:
    """A power of two and its neighbours, best first, within bounds."""
    found = [best, best // 2, best * 2]
    return [size for size in dict.fromkeys(found) if least <= size <= most] or [max(least, min(best, most))]

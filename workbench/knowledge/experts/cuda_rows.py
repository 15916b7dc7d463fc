"""Softmax, norms, reductions, losses and running sums along the contiguous dimension, in CUDA C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_last import COUNTER, EACH, TICKET, can_be_last, last_function
from workbench.knowledge.cuda_module import CEIL, WIDEST, CudaKernel, assemble_cuda
from workbench.knowledge.cuda_row_text import REDUCE, SCAN
from workbench.knowledge.cuda_rows import CudaRowWriter, fitting
from workbench.knowledge.cuda_stay import CudaStayWriter, shared_loads
from workbench.knowledge.experts.base import FUSION, TILES, TRAFFIC, Expert, Match
from workbench.knowledge.experts.row_family import named, plans
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Output, Program
from workbench.knowledge.row_plan import RowPlan, Stage, plan_rows, stages
from workbench.task import ITEM_BYTES, Task

CARD = """\
A row's statistics and all that surrounds them in CUDA C++, one read and one write: the threads of a block load the row by 16-byte accesses
straight into registers in its own narrow type, all loads on their way at once, so that a bfloat16 row takes half the registers that a
float32 copy would, and rows of 32 thousand elements still fit. Reductions go by warp shuffles and one exchange through shared memory.
Short rows get a warp each, without any barrier. Exponentials that are needed again stay in registers. Longer rows are walked. Where all
rows share weights, blocks stay on their multiprocessor: weights are read once a block, and the next row comes while one is reduced. The
last sum of a loss is made by the block that finishes last, without a launch of its own."""

MOST_HELD = 64
"""Elements of a row that one thread may hold at the captured sizes."""


MOST_KEPT = 16384
"""Elements of a row up to which exponentials stay in registers: in longer ones the registers are worth more for a second block."""


SPARE = 28
"""Registers that a thread needs beside those that hold its part of the row: the compiler may use more only where no block is lost by it.
Where the next row is on its way, as many as hold the rows: with 16 of 64 less the compiler spilt."""

WALKERS = 1024
"""Threads of a multiprocessor in blocks that stay and walk their rows: each may use 64 registers."""

ROWS_TO_STAY = 1024
"""Rows from which on blocks that stay are worth it."""


def _fits(task: Task, program: Program) -> Match:
    found = plans(program)
    for plan in found:
        _trial(task, program, plan)
    plan = found[0]
    if plan.rows < 64 and plan.length > 65536:
        raise UnsupportedError("few and long rows, which have to be split, in CUDA C++")
    kind = "a running sum" if program.of_kind("scan") else "statistics" if plan.full_outputs else "a reduction"
    return Match("cuda_rows", 1.9, f"{kind} of {max(plan.rows, 1)} rows of {plan.length} elements in CUDA C++: one read")


def _trial(task: Task, program: Program, plan: RowPlan) -> None:
    """Raises UnsupportedError where the writer can't write the plan."""
    launcher = Launcher(task, program)
    names = {output: f"out_{place}" for place, output in enumerate(plan.program.outputs)}
    CudaRowWriter(plan, launcher, names, "trial", held=True, several=False).write()


def _item_bytes(plan: RowPlan, ahead: bool = False) -> int:
    """Bytes of registers for an element of a held row; with the next row on its way beside it."""
    dtypes = {access.input: access.dtype for access in plan.program.accesses}
    along = {value.input: value for value in plan.program.of_kind("load") if plan.along_row(value)}
    return sum(ITEM_BYTES[dtypes[name]] * (2 if ahead and plan.is_full(value) else 1) for name, value in along.items() if name in dtypes)


def _fits_registers(plan: RowPlan, lanes: int = 1024, ahead: bool = False) -> bool:
    """Whether so many threads hold the row and what they need beside it."""
    held = -(-plan.length * _item_bytes(plan, ahead) // (lanes * 4))
    return held + (max(SPARE, held) if ahead else SPARE) <= min(65536 // lanes, 128 if ahead else 255)


def _may_stay(plan: RowPlan) -> bool:
    """Whether blocks that stay save something: there are weights, and rows enough that each block does several."""
    return plan.rows >= ROWS_TO_STAY and bool(shared_loads(plan)) and _fits_registers(plan, ahead=True)


def _threads(plan: RowPlan) -> int:
    """Threads of a block for one row: as few as leave each some elements of a few wide accesses."""
    lanes = 32
    while lanes < 1024 and lanes * 16 < plan.length:
        lanes *= 2
    # One block of 1024 threads fills a multiprocessor, and nothing runs beside its pauses: two of 512 where their registers do.
    return 512 if lanes == 1024 and plan.length * _item_bytes(plan) <= 512 * 128 else lanes


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    found = plans(program)
    plan = found[0]
    held = plan.length <= MOST_HELD * 1024
    short = plan.kept and plan.length <= 1024
    walks = plan.length >= 2048 or not held
    passes = [*(("row",) if held else ()), *(("loop",) if walks else ())]
    if walks and (not _fits_registers(plan) or (program.of_kind("scan") and plan.length >= 16384)):
        # Registers that spill cost more than a second read; and a long running sum is read once by a loop too, in small blocks.
        passes = ["loop", *(name for name in passes if name != "loop")]
    space: dict[str, tuple[Any, ...]] = {"passes": tuple(passes)}
    space["rows"] = ("several", "one") if short else ("one",)
    if not short and passes[0] == "row" and _may_stay(plan):
        space["grid"] = ("stay", "one")
    if can_be_last(stages(program), found):
        # A block of few threads takes as long for what all rows gave as a launch does.
        threads = 32 * _ROWS[0] if space["rows"][0] == "several" else _threads(plan)
        space["finish"] = ("last", "kernel") if found[1].length <= 4 * EACH * threads else ("kernel", "last")
    space["cache"] = ("default", "stream")
    return space


_ROWS = (4, 8, 2)
"""Rows of a block, where each has a warp."""


def _tune(plan: RowPlan, choices: Mapping[str, Any]) -> dict[str, list[int]]:
    if choices["rows"] == "several":
        return {"ROWS": list(_ROWS)}
    best = _threads(plan)
    if choices["passes"] == "loop":
        best = min(1024, max(256, best))
        if plan.program.of_kind("scan"):
            best = 256  # blocks wait at each step of theirs: small ones, so that many others fill the time
    found = [best, best // 2, best * 2]
    least = 32 if choices["passes"] == "loop" else max(32, plan.length // MOST_HELD)
    if choices["passes"] == "row" and choices.get("grid") == "stay":
        found = [lanes for lanes in found if _fits_registers(plan, lanes, ahead=True)]
    return {"LANES": [size for size in dict.fromkeys(found) if least <= size <= 1024] or [best]}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    _fits(task, program)
    found = stages(program)
    made = [plan_rows(stage.program) for stage in found]
    launcher = Launcher(
        task, program, taken=("VECTOR", "ITEMS", "LANES", "ROWS", "EVEN", "vector", "items", "even", "blocks", "held", "k", *_OF_LAUNCH)
    )
    names = typed_names(launcher, found)
    if any(program.elements(value.deps) >= 2**31 for value in program.values):
        raise UnsupportedError("2**31 elements or more in CUDA C++")
    tune = _tune(made[0], choices)
    own = {output: names[output] for output in found[0].program.outputs}
    writer = _writer(made[0], launcher, own, kernel_name(task), choices)
    kernels = [writer.write()]
    functions = [SCAN if program.of_kind("scan") else REDUCE]
    if len(found) > 1 and program.of_kind("scan"):
        functions.append(REDUCE)
    helpers = [WIDEST, CEIL]
    launches, later = [], list(zip(found[1:], made[1:], strict=True))
    if choices.get("finish") == "last":
        ((stage, plan),) = later
        width = "(32 * ROWS)" if writer.several else "LANES"
        functions += [TICKET, last_function(kernels[0], launcher, found[0], stage, plan, names, kernel_name(task, "finish"), width)]
        helpers.append(COUNTER)
        later = []
    launches += _launch(task, launcher, writer, kernels[0], made[0], tune)
    for stage, plan in later:
        kernel, lines = finishing(task, launcher, stage, plan, names)
        kernels.append(kernel)
        launches += lines
    largest = max(program.accesses, key=lambda access: program.elements(tuple(a for d in access.dims for a in d)))
    launcher.lines += [
        f"if {largest.input}.numel() >= 2**31:",
        f'    raise ValueError("{task.entry}: written for fewer than 2**31 elements")',
        f"if {largest.input}.numel() == 0:",
        f'    raise NotImplementedError("{task.entry}: written for tensors that have elements")',
        *launches,
    ]
    results = [launcher.returned(output, names[output]) for output in program.outputs]
    title = f"{task.name}: everything along a row, fused, in CUDA C++."
    return assemble_cuda(
        task, title, tune, kernels, launcher, results, cache=choices["cache"], helpers=helpers, functions=functions
    )  # fmt: skip


_OF_LAUNCH = ("multiprocessors", "counter", "kept_counter", "kernel", "widest", "ceil_div")
"""Names of the module's own."""


def _writer(plan: RowPlan, launcher: Launcher, names: Mapping[Output, str], name: str, choices: Mapping[str, Any]) -> CudaRowWriter:
    """The writer of the rows' kernel. Blocks that draw tickets stay too, where they have one row at a time: see `cuda_last`."""
    several, held, keeps = choices["rows"] == "several", choices["passes"] == "row", plan.length <= MOST_KEPT
    ahead = choices.get("grid") == "stay" and held
    if not several and (ahead or choices.get("finish") == "last"):
        return CudaStayWriter(plan, launcher, names, name, held=held, ahead=ahead, keeps=keeps)
    return CudaRowWriter(plan, launcher, names, name, held=held, several=several, keeps=keeps)


def typed_names(launcher: Launcher, found: Sequence[Stage]) -> dict[Output, str]:
    """As `row_family.named`; C++ has to know of what type that is which one stage hands to the next."""
    names = named(launcher, found)
    for stage in found:
        for output in stage.handed:
            launcher.dtypes[names[output]] = output.dtype
    return names


def finishing(
    task: Task, launcher: Launcher, stage: Stage, plan: RowPlan, names: Mapping[Output, str]
) -> tuple[CudaKernel, list[str]]:  # fmt: skip
    """A small kernel for a later stage, whose operand has one element a row, and the lines that launch it."""
    own = {output: names[output] for output in stage.program.outputs}
    writer = CudaRowWriter(
        plan, launcher, own, kernel_name(task, "finish"), held=plan.length <= 8192, several=False, literal={"LANES": 256},
        keeps=plan.length <= MOST_KEPT,
    )  # fmt: skip
    kernel = writer.write()
    return kernel, _launch(task, launcher, writer, kernel, plan, {})


def _launch(
    task: Task, launcher: Launcher, writer: CudaRowWriter, kernel: CudaKernel, plan: RowPlan, tune: Mapping[str, Sequence[int]]
) -> list[str]:  # fmt: skip
    """The launch, with the numbers that the source is compiled for: they follow from the sizes of each call."""
    length = launcher.size(plan.reduced)
    lanes = "32" if writer.several else str(writer.literal.get("LANES", "LANES"))
    number = int(lanes) if lanes.isdigit() else tune["LANES"][0]
    wide = [value.input for value in writer.loads] + [writer.outputs[output] for output in plan.full_outputs]
    item = max(ITEM_BYTES[launcher.dtypes.get(value.input, value.dtype)] for value in writer.loads)
    most = min(writer.most, max(1, 32 // item))
    vector = fitting(most, plan.length)
    lines = [f"vector = widest({most}, {length}, {', '.join(dict.fromkeys(wide))})"]
    items = -(-plan.length // (number * vector))
    kernel.macros = [("VECTOR", "vector", vector), ("LANES", lanes, number)]
    if writer.held:
        lines += [
            f"items = ceil_div({length}, {lanes} * vector)",
            f"if items * vector > {2 * MOST_HELD}:",
            f'    raise NotImplementedError("{task.entry}: written for rows that the registers of a block hold")',
        ]
        lines.append(f"even = int({length} == items * {lanes} * vector)")
        kernel.macros.append(("ITEMS", "items", items))
        kernel.macros.append(("EVEN", "even", int(plan.length == items * number * vector)))
        if not writer.several:
            ahead = isinstance(writer, CudaStayWriter) and writer.ahead
            spare, held = f"max({SPARE}, held)" if ahead else str(SPARE), items * vector * writer.held_bytes // 4
            lines.append(f"held = items * vector * {writer.held_bytes} // 4  # registers")
            lines.append(f"blocks = max(1, min(2048 // {lanes}, 65536 // ({lanes} * (held + {spare}))))")
            blocks = max(1, min(2048 // number, 65536 // (number * (held + (max(SPARE, held) if ahead else SPARE)))))
            kernel.macros.append(("BLOCKS", "blocks", blocks))
    else:
        kernel.macros.append(("EVEN", "0", 0))
        if writer.walks:
            lines.append(f"blocks = max(1, {WALKERS} // {lanes})")
            kernel.macros.append(("BLOCKS", "blocks", max(1, WALKERS // number)))
    if writer.walks:
        lines.append(f"multiprocessors = torch.cuda.get_device_properties({launcher.device}).multi_processor_count")
    if writer.several:
        kernel.macros.append(("ROWS", "ROWS", tune["ROWS"][0]))
    return [*lines, *kernel.launch(launcher.device)]


CUDA_ROWS = Expert(
    "cuda_rows", CARD, _fits, _choices, _write, 
    roles={"passes": FUSION, "rows": TILES, "cache": TRAFFIC, "grid": FUSION, "finish": FUSION}, backend="cuda",
    reasons={
        ("passes", "row"): "a block holds the whole row in registers, so that each element is read once",
        ("passes", "loop"): "a block walks its row, so that few registers do for any length",
        ("rows", "one"): "one row a block",
        ("rows", "several"): "a warp a row and several rows a block: short rows need no barrier",
        ("grid", "stay"): "blocks stay and do row after row: weights are read once a block, and the next row comes while one is reduced",
        ("grid", "one"): "a block for each row, which the hardware balances; each reads the weights again",
        ("finish", "last"): "the block that is the last to finish makes the last sum: nothing is launched after the rows",
        ("finish", "kernel"): "a small kernel makes the last sum, when all rows are done",
        ("cache", "default"): "no cache hints",
        ("cache", "stream"): "data that is not needed again is marked to leave the cache first",
    },
)  # fmt: skip

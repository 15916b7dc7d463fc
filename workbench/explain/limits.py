"""What keeps a right kernel from its floor: the first of the limits that the figures show, and the change that lifts it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from workbench.candidate import Evaluation, Resources
from workbench.explain.resources import registers_for_one_more
from workbench.target import TARGETS, Target
from workbench.task import Task

MOST_THREADS = 1024
"""A program of more is not launched."""


@dataclass(frozen=True)
class Limit:
    """A finding: kind, one sentence, one directive, and the figures."""

    kind: str
    summary: str
    directive: str
    evidence: tuple[str, ...] = ()


def find(evaluation: Evaluation, task: Task, floor_us: float) -> Limit:
    """The limit to lift first. Waste that is certain (spills, launches, traffic) comes before what the model suspects."""
    target = TARGETS.get(task.target, TARGETS["cuda:90"])
    for look in (_spills, _launches, _few_programs, _traffic, _no_tensor_cores, _modelled, _occupancy):
        found = look(evaluation, task, target)
        if found is not None:
            return found
    return _memory(evaluation, task, target)


def _main(evaluation: Evaluation) -> Resources | None:
    """The launch that matters most, as far as the record tells: the one with the most programs."""
    return max(evaluation.resources, key=lambda item: item.waves * item.launches, default=None)


def _spills(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    worst = max(evaluation.resources, key=lambda item: item.spill_bytes, default=None)
    if worst is None or worst.spill_bytes < 32:
        return None
    wider = f", or double num_warps (now {worst.warps})" if worst.warps * 2 * target.warp_size <= MOST_THREADS else ""
    return Limit(
        "spills",
        f"{worst.kernel} spills {worst.spill_bytes} bytes of registers a thread to memory.",
        f"Hold less at once in {worst.kernel}: halve its block or tile{wider}, so that a thread needs fewer registers.",
        (f"{worst.registers} registers a thread, {worst.spill_bytes} bytes spilled",),
    )


def _launches(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    time = evaluation.timing.median_us if evaluation.timing is not None else 0.0
    count = evaluation.modelled.launches if evaluation.modelled is not None else sum(item.launches for item in evaluation.resources)
    if not time or not count:
        return None
    cost = count * (target.latency_us + target.launch_us)
    if cost < 0.35 * time or (count == 1 and cost < 0.6 * time):
        return None
    names = ", ".join(dict.fromkeys(item.kernel for item in evaluation.resources))
    if count > 1:
        summary = f"{count} launches cost as much as their work."
        directive = f"Fuse the {count} launches ({names}) into fewer: let one kernel finish what it has in registers instead of storing it."
    else:
        summary = "The launch itself is most of the time: the work is too small for the card."
        directive = "Make the launcher do nothing but allocate and launch once; little else can be gained on an op of this size."
    return Limit("launches", summary, directive, (f"{count} launches, about {cost:.1f} µs of {time:.1f} µs",))


def _few_programs(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    main = _main(evaluation)
    if main is None:
        return None
    programs = 1
    for size in main.grid:
        programs *= size
    if programs >= target.multiprocessors or _time(evaluation) < 3 * (target.latency_us + target.launch_us):
        return None
    return Limit(
        "occupancy",
        f"{main.kernel} has {programs} programs for {target.multiprocessors} multiprocessors: most of the card is idle.",
        f"Split the work of {main.kernel} over at least {2 * target.multiprocessors} programs: smaller tiles, or split the reduced "
        "axis and "
        "combine the parts (tl.atomic_add, or a second short launch).",
        (f"grid {'×'.join(map(str, main.grid))}, {main.waves:.2f} waves",),
    )


def _traffic(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    modelled = evaluation.modelled
    if modelled is None or task.work.bytes <= 0 or modelled.compute_us > modelled.memory_us:
        return None
    excess = modelled.dram_bytes / task.work.bytes
    if excess < 1.25:
        return None
    library = [label for label in evaluation.labels if label.startswith("calls torch.")]
    if modelled.launches > 1:
        cause = f" between its {modelled.launches} launches" + (f" ({', '.join(library)})" if library else "")
        directive = (
            "Keep intermediate results in registers: fuse the launches, so that each input is read once and each output written once."
        )
    else:
        cause = ""
        directive = (
            "Read each input once: hold the row or tile in registers across both passes, or work on fewer rows at a time so that the "
        )
        directive += "second pass finds them in L2."
    return Limit(
        "memory",
        f"It moves {excess:.1f} times the bytes that the op needs{cause}.",
        directive,
        (f"{modelled.dram_bytes / 1e6:.1f} MB moved, {task.work.bytes / 1e6:.1f} MB needed",),
    )


def _no_tensor_cores(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    work = task.work
    if not evaluation.resources or any(item.tensor_cores for item in evaluation.resources):
        return None
    heavy = work.matmul_flops / target.peak("float32") > work.bytes / target.bandwidth
    if not heavy or (work.matmul_dtype == "float32" and task.precision == "match" and not task.tf32):
        return None
    return Limit(
        "compute",
        "Its matrix product does not use the tensor cores.",
        f"Write the product with tl.dot on {work.matmul_dtype} tiles of at least 64×64×32 with a float32 accumulator.",
        (f"{work.matmul_flops / 1e9:.1f} GFLOP in matrix products",),
    )


def _modelled(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    modelled = evaluation.modelled
    if modelled is None:
        return None
    looks: dict[str, Callable[[Evaluation, Task, Target], Limit]] = {"compute": _compute, "l2": _l2}
    look = looks.get(modelled.limiter)
    return look(evaluation, task, target) if look is not None else None


def _compute(evaluation: Evaluation, task: Task, target: Target) -> Limit:
    main = _main(evaluation)
    modelled = evaluation.modelled
    assert modelled is not None
    figures = (f"arithmetic {modelled.compute_us:.1f} µs, memory {modelled.memory_us:.1f} µs (modelled)",)
    if main is not None and main.dot_precision == "ieee":
        directive = (
            "Tile the product so that more is reused from registers (128×64 or 64×128), or where the precision allows it "
            'write input_precision="tf32x3".'
        )
        return Limit("compute", f"{main.kernel} multiplies float32 without tensor cores.", directive, figures)
    if main is not None and main.tensor_cores:
        directive = (
            f"Feed the tensor cores: larger tiles (128×128 or 128×256), num_warps 8, num_stages 3 or 4 (now {main.warps} warps, "
            f"{main.stages} stages), "
            "and programs grouped so that neighbours share tiles in L2."
        )
        return Limit("compute", f"{main.kernel} is limited by its matrix products.", directive, figures)
    return Limit(
        "compute",
        "Arithmetic takes longer than memory.",
        "Do less per element: exp2 with the factor folded into a constant, one reciprocal in place of divisions, no float64, and no "
        "sort or scan "
        "where a reduction does.",
        figures,
    )


def _l2(evaluation: Evaluation, task: Task, target: Target) -> Limit:
    modelled = evaluation.modelled
    assert modelled is not None
    times = modelled.l2_bytes / max(modelled.dram_bytes, 1.0)
    figures = (f"{modelled.l2_bytes / 1e6:.1f} MB requested, {modelled.dram_bytes / 1e6:.1f} MB distinct",)
    summary = f"Its programs ask the L2 for {times:.1f} times the bytes that come from memory."
    if shared := _read_by_every_program(evaluation, task):
        names = " and ".join(shared)
        return Limit(
            "l2",
            f"{summary} Every program reads {names} again.",
            f"Let a program do several rows (two, four or eight, in a loop or as a second axis) and load {names} once for all of them.",
            figures,
        )
    if task.work.matmul_flops:
        directive = "Use each loaded value more often: larger tiles, or programs grouped so that neighbours share tiles in L2."
    elif _crosses_layouts(task):
        directive = (
            "Make neighbouring threads read neighbouring addresses: load each tensor in tiles along its own contiguous axis, and turn a "
            "tile in registers (tl.trans) where the output lies the other way."
        )
    elif _reduces(task):
        directive = (
            "Read each row once: keep it in registers for the second pass where it fits, or merge the passes (online maximum and sum, "
            "Welford)."
        )
    else:
        directive = "Make neighbouring threads read neighbouring addresses: let the last axis of every block be the contiguous one."
    return Limit("l2", summary, directive, figures)


_SHARED = 16
"""An input so many times smaller than the largest is shared by programs, not spread over them."""
_EXPLAINS = 0.4
"""The share of the excess that reading the shared inputs in each program has to explain."""


def _read_by_every_program(evaluation: Evaluation, task: Task) -> tuple[str, ...]:
    """Small inputs (a norm's weight, a bias) that all programs read as a whole, where that explains what is asked of the L2."""
    main, modelled = _main(evaluation), evaluation.modelled
    tensors = [spec for spec in task.inputs if spec.is_tensor]
    if main is None or modelled is None or not tensors or task.work.matmul_flops:
        return ()
    largest = max(spec.nbytes for spec in tensors)
    small = [spec for spec in tensors if 512 <= spec.nbytes * _SHARED <= largest]
    again = sum(spec.nbytes for spec in small) * (math.prod(main.grid) - 1)
    excess = modelled.l2_bytes - modelled.dram_bytes
    return tuple(spec.name for spec in small) if small and _EXPLAINS * excess <= again <= 2.5 * excess else ()


_TURNS = frozenset({"t", "transpose", "permute", "movedim", "swapaxes"})
_REDUCTIONS = frozenset({
    "sum", "mean", "amax", "amin", "max", "min", "var", "var_mean", "softmax", "_softmax", "_log_softmax", "logsumexp", "native_layer_norm",
    "argmax", "argmin", "norm", "linalg_vector_norm", "nll_loss_forward",
})  # fmt: skip


def _crosses_layouts(task: Task) -> bool:
    """Whether a tensor is read along another axis than it lies: by the op, or because it is given so."""
    turned = any(
        spec.is_tensor and spec.strides and len(spec.strides) > 1 and spec.strides[-1] != 1 and spec.shape[-1] > 1 for spec in task.inputs
    )
    return turned or not _TURNS.isdisjoint(task.graph.ops())


def _reduces(task: Task) -> bool:
    return not _REDUCTIONS.isdisjoint(task.graph.ops())


def _occupancy(evaluation: Evaluation, task: Task, target: Target) -> Limit | None:
    main = _main(evaluation)
    if main is None or main.occupancy >= 0.3 or main.tensor_cores or main.occupancy == 0:
        return None
    figures = (
        f"occupancy {main.occupancy:.0%}, limited by {main.limited_by}; {main.registers} registers, {main.shared_bytes} bytes shared",
    )
    fewer = registers_for_one_more(target, main)
    if main.limited_by == "registers" and fewer is not None:
        directive = (
            f"Bring {main.kernel} from {main.registers} to {fewer} registers a thread (one more program fits): a smaller "
            "block, or more warps."
        )
    elif main.limited_by == "shared memory":
        directive = f"Use less shared memory in {main.kernel}: smaller tiles or one stage fewer (now {main.shared_bytes} bytes a program)."
    else:
        directive = f"Give each program of {main.kernel} more warps (now {main.warps}) or launch more, smaller programs."
    return Limit(
        "occupancy", f"Only {main.occupancy:.0%} of the warps that fit are resident: too few to hide memory's latency.", directive, figures
    )


def _memory(evaluation: Evaluation, task: Task, target: Target) -> Limit:
    main = _main(evaluation)
    if main is None:
        return Limit("memory", "It is limited by memory.", "Read and write everything once, 16 bytes a thread.")
    figures = (
        f"{main.vector_bytes} bytes a thread and access, {main.warps} warps, occupancy {main.occupancy:.0%}, {main.waves:.1f} waves",
    )
    if 0 < main.vector_bytes < 16:
        return Limit(
            "memory",
            f"{main.kernel} moves {main.vector_bytes} bytes a thread at a time where 16 are possible.",
            "Make accesses 16 bytes wide: contiguous offsets along the last axis, a block of at least 8 16-bit or 4 32-bit elements "
            "a thread, "
            "fewer warps, and strides that the compiler knows to be multiples of 16 (tl.multiple_of).",
            figures,
        )
    if main.waves > 1 and main.waves % 1 < 0.35 and main.waves < 4:
        return Limit(
            "memory",
            f"The last wave of {main.kernel} is nearly empty ({main.waves:.2f} waves).",
            "Size the grid to whole waves: change the rows or elements a program does, or make it persistent (one program a slot, "
            "looping).",
            figures,
        )
    return Limit(
        "memory",
        f"{main.kernel} is limited by memory and does not reach the bandwidth of a copy.",
        "Have more bytes in flight: process two or four rows (or twice the block) in a program and load all before computing; "
        f"{_other_warps(main.warps, MOST_THREADS // target.warp_size)} (now {main.warps}).",
        figures,
    )


def _other_warps(now: int, most: int) -> str:
    """Both neighbours, or the two below where no more can be launched."""
    others = (max(now // 2, 1), now * 2) if now * 2 <= most else (max(now // 4, 1), max(now // 2, 1))
    return f"try {' and '.join(str(count) for count in dict.fromkeys(others) if count != now)} warps"


def _time(evaluation: Evaluation) -> float:
    return evaluation.timing.median_us if evaluation.timing is not None else 0.0

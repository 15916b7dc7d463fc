"""Elementwise ops as one flat kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.experts.base import FUSION, TRAFFIC, Expert, Match
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.module import Kernel, assemble, kernel_name
from workbench.knowledge.program import Program, Ref
from workbench.knowledge.scope import Names, Needs, Scope
from workbench.target import get_target
from workbench.task import Task

CARD = """\
Any chain of elementwise ops is one read of each input and one write of each output, however many ops it has: the arithmetic hides
behind the memory. What counts is that each thread moves 16 bytes at a time, that enough of them are in flight (a few thousand elements a
program), and that data which is used once leaves the cache first. Broadcast operands are small and stay in the cache; their index is a
division by a size known when the kernel is compiled, which the compiler turns into a multiplication."""


def elementwise(program: Program) -> Dim:
    """The atoms of the results, in the order of memory.

    Raises:
        UnsupportedError: the op is not elementwise, or its results differ in shape.
    """
    if program.of_kind("reduce", "scan", "dot", "index", "size", "gather", "window", "conv"):
        raise UnsupportedError("it is not elementwise")
    atoms = program.outputs[0].atoms
    if any(set(output.atoms) != set(atoms) for output in program.outputs):
        raise UnsupportedError("its results differ in shape")
    if any(not value.deps <= set(atoms) for value in program.values):
        raise UnsupportedError("an operand with a dimension that the result lacks")
    return atoms


def _fits(task: Task, program: Program) -> Match:
    atoms = elementwise(program)
    groups = group_atoms(atoms, tensors_of(program))
    ops = len(program.of_kind("map"))
    if len(groups) <= 1:
        return Match("pointwise", 1.0, f"{ops} elementwise ops over tensors of one shape: one flat pass")
    return Match("pointwise", 0.5, f"{ops} elementwise ops with broadcasting: one flat pass with divided indices")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return {"cache": ("default", "stream"), "grid": ("one", "persistent")}


def tensors_of(program: Program) -> list[Dim]:
    """The atoms of every argument and result."""
    return [value.atoms for value in program.of_kind("load")] + [output.atoms for output in program.outputs]


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    atoms = elementwise(program)
    tensors = tensors_of(program)
    axis = LoopAxis("offsets", "n", group_atoms(atoms, tensors))
    layout = Layout((axis,))
    launcher = Launcher(task, program, taken=("BLOCK", "EVEN", "NUM_WARPS", "PROGRAMS"))
    big = program.elements(frozenset(atoms)) >= 2**31
    needs = Needs()
    # Where every block size that is tried divides the elements, the compiler can drop the masks.
    inside = "(offsets < n) | EVEN" if program.elements(atoms) % 8192 == 0 else "offsets < n"
    parts = list(layout.part_lines(axis, tensors))
    names = Names(
        [value.input for value in program.of_kind("scalar")]
        + ["n", "BLOCK", "EVEN", "mask", "offsets", "start", *(line.split()[0] for line in parts)]
    )
    whole = set(atoms)
    once = {value.id for value in program.of_kind("load") if value.deps == whole}
    scope = Scope(
        program, layout, names, needs, mask=lambda deps: "mask" if deps else "", pads={},
        eviction=lambda value: "evict_first" if choices["cache"] == "stream" and value.id in once else "",
    )  # fmt: skip
    scope.compute([output.value.id for output in program.outputs if isinstance(output.value, Ref)])

    kernel = Kernel(kernel_name(task), "Each program computes BLOCK neighbouring elements.", grid="")
    kernel.parameters = [(f"{name}_ptr", name) for name in dict.fromkeys(value.input for value in program.of_kind("load"))]
    kernel.parameters += [(value.input, value.input) for value in program.of_kind("scalar")]
    outputs = [launcher.allocate(output, "out") for output in program.outputs]
    stores = []
    for output, name in zip(program.outputs, outputs, strict=True):
        kernel.parameters.append((f"{name}_ptr", name))
        # A single element has no coordinate, but the mask is a block, and so the addresses have to be one.
        where = layout.offset(output.atoms) if atoms else "offsets"
        stores.append(f"tl.store({name}_ptr + {where}, {scope.operand(output.value, output.dtype).text}, mask=mask)")
    total = f"{outputs[0]}.numel()"
    kernel.parameters.append(("n", total))
    if axis.is_split:
        # Sizes known when the kernel is compiled make divisions cheap, and let the compiler see which addresses are neighbours.
        kernel.constants += [(axis.group_size(place), launcher.size(group)) for place, group in enumerate(axis.groups)]
    kernel.constants.append(("BLOCK", "BLOCK"))
    if "EVEN" in inside:
        kernel.constants.append(("EVEN", f"{total} % BLOCK == 0"))
    inner = [*parts, *scope.lines, *stores]
    start = "tl.program_id(0).to(tl.int64)" if big else "tl.program_id(0)"
    if choices["grid"] == "persistent":
        kernel.doc = "A fixed number of programs walks all elements, BLOCK at a time, so that each starts once."
        lanes = ["offsets = start + tl.arange(0, BLOCK)", f"mask = {inside}"]
        kernel.body = [
            f"for start in tl.range({start} * BLOCK, n, tl.num_programs(0) * BLOCK):", *(f"    {line}" for line in [*lanes, *inner])
        ]  # fmt: skip
        launcher.lines += multiprocessors(launcher.device)
        kernel.grid = f"(min(triton.cdiv({total}, BLOCK), multiprocessors * PROGRAMS),)"
    else:
        kernel.body = [f"offsets = {start} * BLOCK + tl.arange(0, BLOCK)", f"mask = {inside}", *inner]
        kernel.grid = f"(triton.cdiv({total}, BLOCK),)"
    if not big:
        launcher.lines += refuse_large(task.entry, outputs[0])
    kernel.options["num_warps"] = "NUM_WARPS"
    # At least 16 bytes a thread in the first choice: 8 elements of a half dtype, by 4 warps.
    least = 4 * get_target(task.target).warp_size * 8
    tune: dict[str, list[int]] = {"BLOCK": [least, least * 2, least * 4, least * 8], "NUM_WARPS": [4, 8]}
    if choices["grid"] == "persistent":
        tune["PROGRAMS"] = [8, 4, 16]
    launcher.lines += kernel.launch()
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, outputs, strict=True)]
    title = f"{task.name}: every elementwise step in one pass over memory."
    return assemble(task, title, tune, [kernel], launcher, results, needs)


def multiprocessors(device: str) -> list[str]:
    """Launcher's lines that count the GPU's multiprocessors; a usual number where the tensors are on no GPU."""
    return [
        f"on_gpu = {device}.type == \"cuda\"",
        f"multiprocessors = torch.cuda.get_device_properties({device}).multi_processor_count if on_gpu else 132",
    ]  # fmt: skip


def refuse_large(entry: str, tensor: str) -> list[str]:
    """Launcher's lines that refuse sizes at which 32-bit offsets would wrap around."""
    return [f"if {tensor}.numel() >= 2**31:", f'    raise ValueError("{entry}: written for fewer than 2**31 elements")']


POINTWISE = Expert(
    "pointwise", CARD, _fits, _choices, _write,
    roles={"grid": FUSION, "cache": TRAFFIC},
    reasons={
        ("grid", "persistent"): "a fixed number of programs loops over the elements, which saves starting thousands of them",
        ("grid", "one"): "one program a block of elements, so that the hardware balances them",
        ("cache", "stream"): "data that is read once is marked to leave the cache first",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip

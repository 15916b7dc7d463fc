"""Elementwise ops over two-dimensional tiles: broadcasting without divisions by every element, and transposed operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.experts.base import TRAFFIC, Expert, Match
from workbench.knowledge.experts.pointwise import elementwise, refuse_large, tensors_of
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.module import Kernel, assemble, kernel_name
from workbench.knowledge.program import Program, Ref
from workbench.knowledge.scope import Names, Needs, Scope
from workbench.task import Task

CARD = """\
A transposed operand can't be read along its rows and written along the result's rows by the same threads: one of the two would touch a
new cache line for every element. A square tile can: it is read in the operand's direction, turned in shared memory by the compiler, and
written in the result's direction, so that both sides move whole lines. For broadcast operands a tile gives each row one scalar and each
column one vector, in place of an index division an element."""


def axes_of(program: Program) -> tuple[Dim, Dim, Dim]:
    """Atoms of the columns (innermost in the result), of the rows, and of what the grid walks."""
    atoms = elementwise(program)
    groups = group_atoms(atoms, tensors_of(program))
    if len(groups) < 2:
        raise UnsupportedError("its tensors have one shape: a flat pass is enough")
    columns = groups[-1]
    turned = [value.atoms for value in program.of_kind("load") if value.atoms and value.atoms[-1] not in columns]
    turned = [atoms for atoms in turned if program.elements(atoms) * 16 >= program.elements(elementwise(program))]
    if not turned:
        return columns, tuple(atom for group in groups[:-1] for atom in group), ()
    rows = next(group for group in groups if turned[0][-1] in group)
    return columns, rows, tuple(atom for group in groups if group not in (rows, columns) for atom in group)


def _fits(task: Task, program: Program) -> Match:
    columns, rows, _ = axes_of(program)
    if any(
        value.atoms and value.atoms[-1] in rows and program.elements(value.atoms) > program.elements(rows)
        for value in program.of_kind("load")
    ):
        return Match("tile", 1.5, "elementwise, with an operand stored in another order than the result: square tiles")
    wide = program.elements(columns) >= 64
    return Match("tile", 0.8 if wide else 0.3, "elementwise with broadcasting: tiles of rows by columns")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return {"cache": ("default", "stream")}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    columns, rows, rest = axes_of(program)
    tensors = tensors_of(program)
    column_axis = LoopAxis("cols", "N", group_atoms(columns, tensors))
    row_axis = LoopAxis("rows", "M", group_atoms(rows, tensors))
    plane_axis = LoopAxis("plane", "P", group_atoms(rest, tensors))
    axes = (row_axis, column_axis, plane_axis) if rest else (row_axis, column_axis)
    layout = Layout(axes)
    launcher = Launcher(task, program, taken=("ROWS", "COLS", "NUM_WARPS"))
    big = program.elements(elementwise(program)) >= 2**31
    needs = Needs()
    turned = _fits(task, program).score > 1
    parts = {axis.name: list(layout.part_lines(axis, tensors)) for axis in axes}
    taken = {"rows", "cols", "plane", "tile", "mask", "M", "N", "P", "ROWS", "COLS"} | {value.input for value in program.of_kind("scalar")}
    taken |= {line.split()[0] for lines in parts.values() for line in lines}

    def mask(deps: frozenset[int]) -> str:
        along, across = bool(deps & set(columns)), bool(deps & set(rows))
        return "mask" if along and across else "cols < N" if along else "rows < M" if across else ""

    once = {value.id for value in program.of_kind("load") if value.deps >= set(columns) | set(rows)}
    scope = Scope(
        program, layout, Names(taken), needs, mask=mask, pads={},
        eviction=lambda value: "evict_first" if choices["cache"] == "stream" and value.id in once else "",
    )  # fmt: skip
    scope.compute([output.value.id for output in program.outputs if isinstance(output.value, Ref)])
    outputs = [launcher.allocate(output, "out") for output in program.outputs]
    kernel = Kernel(kernel_name(task), "Each program computes a tile of ROWS by COLS elements.", grid="")
    if turned:
        kernel.doc += " Operands stored in the other order are read along their own rows, and turned on the chip."
    kernel.parameters = [(f"{name}_ptr", name) for name in dict.fromkeys(value.input for value in program.of_kind("load"))]
    kernel.parameters += [(value.input, value.input) for value in program.of_kind("scalar")]
    kernel.parameters += [(f"{name}_ptr", name) for name in outputs]
    for axis in axes:
        if axis.is_split:
            kernel.constants += [(axis.group_size(place), launcher.size(group)) for place, group in enumerate(axis.groups)]
        if axis is not plane_axis or f"* {axis.size}" in layout.offset(tensors[0]):
            kernel.parameters.append((axis.size, launcher.size(axis.atoms)))
    kernel.constants += [("ROWS", "ROWS"), ("COLS", "COLS")]
    wide = ".to(tl.int64)" if big else ""
    # Tiles along a row of the result come one after the other: neighbours share cache lines while both are alive.
    across, down = "tl.cdiv(N, COLS)", "tl.cdiv(M, ROWS)"
    kernel.body = [
        f"tile = tl.program_id(0){wide}",
        f"cols = (tile % {across} * COLS + tl.arange(0, COLS))[None, :]",
        f"rows = (tile // {across}{f' % {down}' if rest else ''} * ROWS + tl.arange(0, ROWS))[:, None]",
        *([f"plane = tile // ({across} * {down})"] if rest else []),
        *(line for axis in axes for line in parts[axis.name]),
        "mask = (rows < M) & (cols < N)",
        *scope.lines,
    ]
    for output, name in zip(program.outputs, outputs, strict=True):
        kernel.body.append(
            f"tl.store({name}_ptr + {layout.offset(output.atoms)}, {scope.operand(output.value, output.dtype).text}, mask=mask)"
        )
    planes = f" * {launcher.size(rest)}" if rest else ""
    kernel.grid = f"(triton.cdiv({launcher.size(columns)}, COLS) * triton.cdiv({launcher.size(rows)}, ROWS){planes},)"
    kernel.options["num_warps"] = "NUM_WARPS"
    if not big:
        launcher.lines += refuse_large(task.entry, outputs[0])
    launcher.lines += kernel.launch()
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, outputs, strict=True)]
    if turned:
        tune = {"ROWS": [64, 32, 128], "COLS": [64, 32, 128], "NUM_WARPS": [8, 4]}
    else:
        lanes = 1 << (program.elements(columns) - 1).bit_length()
        best = min(max(lanes, 16), 1024)
        tune = {
            "COLS": list(dict.fromkeys([best, max(best // 2, 16)])),
            "ROWS": list(dict.fromkeys(max(area // best, 1) for area in (4096, 2048, 8192))),
            "NUM_WARPS": [4, 8],
        }
    return assemble(task, f"{task.name}: every elementwise step in one pass, tile by tile.", tune, [kernel], launcher, results, needs)


TILE = Expert(
    "tile", CARD, _fits, _choices, _write,
    roles={"cache": TRAFFIC},
    reasons={
        ("cache", "stream"): "data that is read once is marked to leave the cache first",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip

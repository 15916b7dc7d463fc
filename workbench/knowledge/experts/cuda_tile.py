"""Elementwise ops with an operand stored in another order than the result, in CUDA C++: square tiles, turned in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_emit import CExpr, c_type
from workbench.knowledge.cuda_module import CEIL, CudaKernel, assemble_cuda, pointer
from workbench.knowledge.cuda_scope import CudaScope, c_names
from workbench.knowledge.experts.base import TRAFFIC, Expert, Match
from workbench.knowledge.experts.pointwise import elementwise, refuse_large, tensors_of
from workbench.knowledge.experts.tile import axes_of
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Program, Ref, Value
from workbench.task import Task

CARD = """\
A transposed operand in CUDA C++: a block reads a square tile of it along the operand's own rows into shared memory, whose rows are a word
longer than the tile so that columns fall into different banks, and then computes and writes along the result's rows. Both sides move
whole lines, and everything else that is elementwise happens on the way out."""


def _turned(program: Program) -> dict[int, Value]:
    """The loads whose memory runs along the rows of a tile."""
    columns, rows, _ = axes_of(program)
    return {
        value.id: value for value in program.of_kind("load") if value.atoms and value.atoms[-1] in rows and value.deps & set(columns)
    }  # fmt: skip


def _fits(task: Task, program: Program) -> Match:
    if not _turned(program):
        raise UnsupportedError("every operand is stored in the result's order")
    return Match("cuda_tile", 1.4, "elementwise, with a transposed operand, in CUDA C++: tiles turned in shared memory")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return {"cache": ("default", "stream")}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    _fits(task, program)
    if program.elements(elementwise(program)) >= 2**31:
        raise UnsupportedError("2**31 elements or more in CUDA C++")
    columns, rows, rest = axes_of(program)
    tensors = tensors_of(program)
    column_axis = LoopAxis("cols", "N", group_atoms(columns, tensors))
    row_axis = LoopAxis("rows", "M", group_atoms(rows, tensors))
    plane_axis = LoopAxis("plane", "P", group_atoms(rest, tensors))
    axes = (row_axis, column_axis, plane_axis) if rest else (row_axis, column_axis)
    layout = Layout(axes)
    launcher = Launcher(task, program, taken=("TILE", "THREADS", "k"))
    outputs = [launcher.allocate(output, "out") for output in program.outputs]
    turned = _turned(program)
    dtypes = {value.input: launcher.dtypes[value.input] for value in program.of_kind("load")}
    parts = {axis.name: [f"const int {line.replace('//', '/')};" for line in layout.part_lines(axis, tensors)] for axis in axes}
    taken = ["rows", "cols", "plane", "tile", "across", "down", "left", "top", "step", "i", "M", "N", "P", *outputs]
    taken += [line.split()[2] for lines in parts.values() for line in lines]
    taken += [axis.group_size(place) for axis in axes for place in range(len(axis.groups))]
    names = c_names(taken)
    rooms = {id: names.new(f"turned_{value.input}") for id, value in turned.items()}

    def at(value: Value) -> str:
        return layout.offset(value.atoms).replace("//", "/")

    def source(value: Value) -> CExpr | None:
        if value.kind == "scalar":
            return CExpr(f"static_cast<{c_type(value.dtype)}>({value.input}_)")
        if value.kind != "load":
            return None
        return CExpr(f"up({rooms[value.id]}[i % TILE][i / TILE])" if value.id in rooms else f"up({value.input}_ptr[{at(value)}])")

    scope = CudaScope(program, names, source)
    scope.compute([output.value.id for output in program.outputs if isinstance(output.value, Ref)])
    inside = [line for axis in axes if axis is not plane_axis for line in parts[axis.name]]
    rooms_text = [
        f"__shared__ {c_type(dtypes[value.input])} {rooms[id]}[TILE][TILE + 4 / sizeof({c_type(dtypes[value.input])})];"
        for id, value in turned.items()
    ]
    reads = [f"{rooms[id]}[i / TILE][i % TILE] = READ({value.input}_ptr + {at(value)});" for id, value in turned.items()]
    stores = [
        f"{name}_ptr[{layout.offset(output.atoms)}] = Down<{c_type(output.dtype)}>::of({scope.operand(output.value, output.dtype).text});"
        for output, name in zip(program.outputs, outputs, strict=True)
    ]
    loop = ["#pragma unroll", "for (int step = 0; step < TILE * TILE; step += THREADS) {", "  const int i = step + threadIdx.x;"]
    kernel = CudaKernel(
        kernel_name(task), "Each block computes a square tile. What is stored in the other order is turned on the chip.", "THREADS",
        grid=_grid(launcher, columns, rows, rest), block=("THREADS", "1"),
    )  # fmt: skip
    kernel.body = [
        "const int across = (N + TILE - 1) / TILE, tile = blockIdx.x;",
        "const int left = tile % across * TILE;",
        "const int down = (M + TILE - 1) / TILE, top = tile / across % down * TILE;" if rest else "const int top = tile / across * TILE;",
        *(["const int plane = tile / (across * down);", *parts["plane"]] if rest else []),
        *rooms_text,
        *loop,
        "  const int rows = top + i % TILE, cols = left + i / TILE;",
        "  if (rows < M && cols < N) {",
        *(f"    {line}" for line in [*inside, *reads]),
        "  }",
        "}",
        "__syncthreads();",
        *loop,
        "  const int cols = left + i % TILE, rows = top + i / TILE;",
        "  if (rows < M && cols < N) {",
        *(f"    {line}" for line in [*inside, *scope.lines, *stores]),
        "  }",
        "}",
    ]
    kernel.parameters = [pointer(f"{name}_ptr", dtype, name) for name, dtype in dtypes.items()]
    for name in dict.fromkeys(value.input for value in program.of_kind("scalar")):
        floating = any(value.dtype.startswith("float") for value in program.of_kind("scalar") if value.input == name)
        kernel.parameters.append(("double" if floating else "int", f"{name}_", name))
    kernel.parameters += [
        pointer(f"{name}_ptr", output.dtype, name, written=True) for output, name in zip(program.outputs, outputs, strict=True)
    ]
    for axis in axes:
        if axis is not plane_axis:
            kernel.parameters.append(("const int", axis.size, launcher.size(axis.atoms)))
        if axis.is_split:
            kernel.parameters += [
                ("const int", axis.group_size(place), launcher.size(group)) for place, group in enumerate(axis.groups)
            ]  # fmt: skip
    kernel.macros = [("TILE", "TILE", 64), ("THREADS", "THREADS", 256)]
    read = "__ldcs(address)" if choices["cache"] == "stream" else "*(address)"
    launcher.lines += refuse_large(task.entry, outputs[0])
    launcher.lines += [f"if {outputs[0]}.numel():", *(f"    {line}" for line in kernel.launch(launcher.device))]
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, outputs, strict=True)]
    return assemble_cuda(
        task, f"{task.name}: every elementwise step in one pass, tile by tile, in CUDA C++.", {"TILE": [64, 32], "THREADS": [256, 512]},
        [kernel], launcher, results, cache=choices["cache"], helpers=(CEIL,), functions=(f"#define READ(address) {read}",),
    )  # fmt: skip


def _grid(launcher: Launcher, columns: tuple[int, ...], rows: tuple[int, ...], rest: tuple[int, ...]) -> str:
    planes = f" * {launcher.size(rest)}" if rest else ""
    return f"ceil_div({launcher.size(columns)}, TILE) * ceil_div({launcher.size(rows)}, TILE){planes}"


CUDA_TILE = Expert(
    "cuda_tile", CARD, _fits, _choices, _write, roles={"cache": TRAFFIC}, backend="cuda",
    reasons={
        ("cache", "stream"): "data that is read once is marked to leave the cache first",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip

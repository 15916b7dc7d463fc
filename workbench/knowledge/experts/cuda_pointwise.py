"""Elementwise ops as one flat CUDA C++ kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.cuda_emit import CExpr, c_type
from workbench.knowledge.cuda_module import CEIL, WIDEST, CudaKernel, assemble_cuda, pointer
from workbench.knowledge.cuda_scope import CudaScope, c_names
from workbench.knowledge.experts.base import TRAFFIC, Expert, Match
from workbench.knowledge.experts.pointwise import elementwise, refuse_large, tensors_of
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.module import kernel_name
from workbench.knowledge.program import Program, Ref, Value
from workbench.task import ITEM_BYTES, Task

CARD = """\
A chain of elementwise ops in CUDA C++: each thread loads 16 bytes of every input at once, as one instruction, has several such loads on
their way before it waits for the first, computes in float registers and stores 16 bytes. A broadcast operand is read where it lies: its
index is a division by a size, done once for a thread's neighbouring elements."""


def _fits(task: Task, program: Program) -> Match:
    atoms = elementwise(program)
    _check(program, atoms)
    ops = len(program.of_kind("map"))
    return Match("cuda_pointwise", 0.45, f"{ops} elementwise ops in CUDA C++: 16 bytes a thread and access")


def _check(program: Program, atoms: Dim) -> tuple[Dim, ...]:
    groups = group_atoms(atoms, tensors_of(program))
    if not atoms:
        raise UnsupportedError("a single element")
    if groups:
        last = set(groups[-1])
        for value in program.of_kind("load"):
            if value.deps & last and tuple(value.atoms[-len(groups[-1]) :]) != groups[-1]:
                raise UnsupportedError("an operand whose memory runs along another dimension than the result's")
    return groups


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return {"cache": ("default", "stream")}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    atoms = elementwise(program)
    groups = _check(program, atoms)
    axis = LoopAxis("offsets", "n", groups)
    layout = Layout((axis,))
    launcher = Launcher(task, program, taken=("BLOCK", "UNROLL", "vector", "k"))
    outputs = [launcher.allocate(output, "out") for output in program.outputs]
    sizes = [axis.group_size(place) for place in range(len(groups))] if axis.is_split else []
    names = c_names([*sizes, *(axis.coordinate(place) for place in range(len(groups))), "n", "offsets", *outputs])
    last = set(groups[-1])
    loads = program.of_kind("load")
    scalars = {value.input for value in program.of_kind("scalar")}
    packs = {value.id: names.new(f"{value.input}s") for value in loads if value.deps & last}
    dtypes = {value.input: launcher.dtypes[value.input] for value in loads}

    def source(value: Value) -> CExpr | None:
        if value.kind == "scalar":
            return CExpr(f"static_cast<{c_type(value.dtype)}>({value.input}_)")
        if value.kind != "load":
            return None
        if value.id in packs:
            return CExpr(f"up({packs[value.id]}.at[e])")
        return CExpr(f"up({value.input}_ptr[{layout.offset(value.atoms).replace('//', '/')}])")

    scope = CudaScope(program, names, source)
    free = [value.id for value in loads if value.id not in packs]
    outer = scope.inner()
    outer.compute(free, name_all=True)
    scope.env.update(outer.env)
    results = {output.value.id for output in program.outputs if isinstance(output.value, Ref)}
    scope.compute(results)

    parts = [f"const int {line.replace('//', '/')};" for line in layout.part_lines(axis, tensors_of(program))]
    fetches = [
        f"const Pack<{c_type(dtypes[value.input])}, VECTOR> {packs[value.id]} = "
        f"fetch<{c_type(dtypes[value.input])}, VECTOR>({value.input}_ptr + {layout.offset(value.atoms)});"
        for value in loads
        if value.id in packs
    ]
    declared = [f"Pack<{c_type(output.dtype)}, VECTOR> {name}s;" for output, name in zip(program.outputs, outputs, strict=True)]
    stores = [
        f"{name}s.at[e] = Down<{c_type(output.dtype)}>::of({scope.operand(output.value, output.dtype).text});"
        for output, name in zip(program.outputs, outputs, strict=True)
    ]
    puts = [f"put({name}_ptr + {layout.offset(output.atoms)}, {name}s);" for output, name in zip(program.outputs, outputs, strict=True)]
    element = ["#pragma unroll", "for (int e = 0; e < VECTOR; ++e) {", *(f"  {line}" for line in [*scope.lines, *stores]), "}"]
    kernel = CudaKernel(
        kernel_name(task), "Each thread computes UNROLL times VECTOR neighbouring elements.", "BLOCK",
        grid=f"ceil_div({outputs[0]}.numel(), BLOCK * UNROLL * vector)", block=("BLOCK", "1"),
    )  # fmt: skip
    kernel.parameters = [pointer(f"{name}_ptr", dtype, name) for name, dtype in dtypes.items()]
    kernel.parameters += [("double" if _is_float(program, name) else "int", f"{name}_", name) for name in sorted(scalars)]
    kernel.parameters += [
        pointer(f"{name}_ptr", output.dtype, name, written=True) for output, name in zip(program.outputs, outputs, strict=True)
    ]
    kernel.parameters.append(("const int", "n", f"{outputs[0]}.numel()"))
    kernel.parameters += [("const int", axis.group_size(place), launcher.size(groups[place])) for place in range(len(groups)) if sizes]
    body = ["#pragma unroll", "for (int part = 0; part < UNROLL; ++part) {"]
    inner = ["const int offsets = ((blockIdx.x * UNROLL + part) * BLOCK + threadIdx.x) * VECTOR;", "if (offsets >= n) break;"]
    inner += [*parts, *outer.lines, *fetches, *declared, *element, *puts]
    kernel.body = [*body, *(f"  {line}" if not line.startswith("#") else line for line in inner), "}"]
    most = 16 // min([ITEM_BYTES[dtype] for dtype in [*dtypes.values(), *(output.dtype for output in program.outputs)]])
    length = launcher.size(groups[-1])
    wide = [name for name in dtypes if any(value.input == name and value.id in packs for value in loads)]
    launcher.lines += refuse_large(task.entry, outputs[0])
    launcher.lines.append(f"vector = widest({most}, {length}, {', '.join(wide or outputs[:1])})")
    fits = most
    while fits > 1 and program.elements(groups[-1]) % fits:
        fits //= 2
    kernel.macros = [("VECTOR", "vector", fits), ("BLOCK", "BLOCK", 256), ("UNROLL", "UNROLL", 2)]
    launcher.lines += [
        f"if {outputs[0]}.numel():",
        *(f"    {line}" for line in kernel.launch(launcher.device)),
    ]
    returned = [launcher.returned(output, name) for output, name in zip(program.outputs, outputs, strict=True)]
    tune = {"BLOCK": [256, 128, 512], "UNROLL": [2, 1, 4]}
    title = f"{task.name}: every elementwise step in one pass over memory, in CUDA C++."
    return assemble_cuda(
        task, title, tune, [kernel], launcher, returned, cache=choices["cache"], helpers=(WIDEST, CEIL)
    )  # fmt: skip


def _is_float(program: Program, name: str) -> bool:
    return any(value.dtype.startswith("float") for value in program.of_kind("scalar") if value.input == name)


CUDA_POINTWISE = Expert(
    "cuda_pointwise", CARD, _fits, _choices, _write, roles={"cache": TRAFFIC}, backend="cuda",
    reasons={
        ("cache", "stream"): "data that is read once is marked to leave the cache first",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip

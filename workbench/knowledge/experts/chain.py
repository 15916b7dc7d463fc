"""Ops of several heavy steps: each stage by the expert that fits it, one launcher around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.chain_plan import Link, cut
from workbench.knowledge.experts.base import ALGORITHM, FUSION, Expert, Match
from workbench.knowledge.experts.columns import COLUMNS
from workbench.knowledge.experts.convolution import CONVOLUTION
from workbench.knowledge.experts.matmul import MATMUL, PRECISIONS, precisions
from workbench.knowledge.experts.pointwise import POINTWISE
from workbench.knowledge.experts.reduction import REDUCTION
from workbench.knowledge.experts.row_family import REASONS
from workbench.knowledge.experts.rows import ROWS
from workbench.knowledge.experts.tile import TILE
from workbench.knowledge.experts.window import WINDOW
from workbench.knowledge.module import assemble_blocks, call_lines, kernel_name
from workbench.knowledge.program import Program, Ref
from workbench.task import InputSpec, Task, Values, Work

CARD = """\
Some ops have several steps that each want a kernel of their own: a product and the softmax of its rows, a convolution and a norm over
its channels, attention with heads too wide for one program's registers. Cut where a step needs another's whole result, and fused
everywhere else, such an op is a few launches: what comes before a reduction is computed while it is read, and what follows a product in
its epilogue. A convolution may be left to PyTorch, whose own kernels are good at it: then what is gained is what surrounds it, and the
share of the candidate's own kernels says how much that is."""

_STAGES = (MATMUL, CONVOLUTION, WINDOW, ROWS, COLUMNS, REDUCTION, TILE, POINTWISE)


@dataclass(frozen=True)
class Stage:
    """A link with the expert that writes it, as a task of its own."""

    link: Link
    task: Task
    expert: Expert | None


def _fits(task: Task, program: Program) -> Match:
    found = _variants(task, program)
    if not found:
        raise UnsupportedError("it is one step")
    steps = next(iter(found.values()))
    what = ", ".join(stage.expert.name if stage.expert else "the library's convolution" for stage in steps)
    return Match("chain", 1.0, f"{len(steps)} stages: {what}")


def _variants(task: Task, program: Program) -> dict[str, tuple[Stage, ...]]:
    """The ways to cut the op: convolutions of its own, and left to the library."""
    found: dict[str, tuple[Stage, ...]] = {}
    reason: UnsupportedError | None = None
    for name in ("own", "library"):
        if name == "library" and not program.of_kind("conv"):
            continue
        for nest in (True, False):
            try:
                links = cut(program, name == "library", nest)
                steps = tuple(_stage(task, program, number, link) for number, link in enumerate(links, start=1))
            except UnsupportedError as error:
                reason = reason or error
                continue
            found |= {name: steps} if len(steps) > 1 else {}
            break
    if not found and reason is not None:
        raise reason
    return found


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    found = _variants(task, program)
    space: dict[str, tuple[Any, ...]] = {}
    if program.of_kind("conv"):
        space["convolution"] = tuple(found)
    largest: dict[str, tuple[Any, ...]] = {}
    for stage in next(iter(found.values())):
        if stage.expert in (ROWS, COLUMNS, REDUCTION):
            largest = largest or stage.expert.choices(stage.task, stage.link.program)
    space |= {name: values for name, values in largest.items() if name == "passes" and len(values) > 1}
    if any(access.dtype == "float32" for access in program.accesses) and program.of_kind("dot", "conv"):
        space["precision"] = precisions(task)
    return space


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    steps = _variants(task, program)[choices.get("convolution", "own")]
    tune: dict[str, Sequence[Any]] = {}
    blocks: dict[str, str] = {}
    imports: list[str] = []
    passed = {value.input for value in program.of_kind("scalar")}
    lines = []
    for spec in task.inputs:
        if not spec.is_tensor and spec.name not in passed:
            known = f"{spec.name} = {spec.values.value!r}"
            lines += [f"if {spec.name} != {spec.values.value!r}:", f'    raise ValueError("{task.entry}: written for {known}")']
    for number, stage in enumerate(steps, start=1):
        text = _library(stage) if stage.expert is None else _written(stage, choices)
        found, parts, needed = _parts(text)
        if len(steps) > 1:
            for name in found:
                parts = {key: re.sub(rf"\b{name}\b", f"{name}_{number}", part) for key, part in parts.items()}
            found = {f"{name}_{number}": values for name, values in found.items()}
        tune |= found
        imports += needed
        blocks |= parts
        given = [spec.name for spec in stage.task.inputs]
        lines += call_lines(f"{', '.join(stage.link.results)} = {stage.task.entry}(", given, ")")
    results = [_result(task, program, place) for place, output in enumerate(program.outputs) if not output.into]
    arguments = {spec.name for spec in task.inputs}
    own = [access.input for access in program.accesses if access.input not in arguments]
    title = f"{task.name}: {len(steps)} stages, each fused as far as it goes."
    if any(stage.expert is None for stage in steps):
        title += " The convolution itself is PyTorch's own; the kernels here are for what surrounds it."
    return assemble_blocks(
        task, title, tune, list(blocks.values()), lines, tuple(dict.fromkeys([*own, *program.counters])), results, imports
    )


def _result(task: Task, program: Program, place: int) -> str:
    output = program.outputs[place]
    if not isinstance(output.value, Ref):
        raise UnsupportedError("a constant result")
    return f"out_{place + 1}"


def _stage(task: Task, program: Program, number: int, link: Link) -> Stage:
    """The link as a task of its own, and who writes it."""
    given = {spec.name: spec for spec in task.inputs}
    specs = []
    for access in {access.input: access for access in link.program.accesses}.values():
        shape = tuple(program.elements(dim) for dim in access.dims)
        strides = tuple(program.elements(atom for dim in access.dims[place + 1 :] for atom in dim) for place in range(len(shape)))
        made = InputSpec(access.input, shape, access.dtype, strides, Values("normal"))
        specs.append(given.get(access.input, made))
    specs += [InputSpec(counter, (), "int64", (), Values("normal")) for counter in link.program.counters]
    specs += [given[name] for name in dict.fromkeys(value.input for value in link.program.of_kind("scalar"))]
    name = f"{kernel_name(task).removesuffix('_kernel')}_stage_{number}"
    own = replace(
        task, name=name, reference="", entry=name, inputs=tuple(specs), outputs=(), work=Work(0, 0), format="function", init_args=()
    )
    if link.kind == "library":
        return Stage(link, own, None)
    fits = []
    reasons = []
    for expert in _STAGES:
        try:
            match = expert.fits(own, link.program)
        except UnsupportedError as error:
            reasons.append(f"{expert.name}: {error}")
            continue
        if match is not None:
            fits.append((match.score, expert))
    if not fits:
        raise UnsupportedError(f"stage {number}, of kind {link.kind}, fits no expert ({reasons[0] if reasons else ''})")
    return Stage(link, own, max(fits, key=lambda fit: fit[0])[1])


def _written(stage: Stage, choices: Mapping[str, Any]) -> str:
    assert stage.expert is not None
    space = stage.expert.choices(stage.task, stage.link.program)
    chosen = {name: choices[name] if choices.get(name) in values else values[0] for name, values in space.items()}
    return stage.expert.write(stage.task, stage.link.program, chosen)


def _library(stage: Stage) -> str:
    """A function that calls PyTorch's convolution."""
    (value,) = stage.link.program.of_kind("conv")
    assert value.window is not None
    image, weight = (stage.link.program[ref].input for ref in value.refs)
    rank = len(value.window.kernel)
    settings = [f"stride={value.window.stride}", f"padding={value.window.padding}", f"dilation={value.window.dilation}"]
    function = f"conv{rank}d"
    if value.op == "transposed":
        function = f"conv_transpose{rank}d"
        sizes, window = stage.link.program.sizes, value.window
        access = next(access for access in stage.link.program.accesses if access.input == image)
        more = []
        for place, atom in enumerate(value.over):
            length = stage.link.program.elements(access.dims[place + 2])
            least = (
                (length - 1) * window.stride[place] - 2 * window.padding[place] + window.dilation[place] * (window.kernel[place] - 1) + 1
            )
            more.append(sizes[atom] - least)
        settings.append(f"output_padding={tuple(more)}")
    if value.groups > 1:
        settings.append(f"groups={value.groups}")
    call = call_lines(f"return torch.nn.functional.{function}(", [image, weight, *settings], ")")
    arguments = ", ".join(spec.name for spec in stage.task.inputs)
    return "\n".join(
        [f"def {stage.task.entry}({arguments}):", '    """The library\'s convolution: none of these kernels\' doing."""']
        + [f"    {line}" for line in call]
    )


def _parts(text: str) -> tuple[dict[str, Sequence[Any]], dict[str, str], list[str]]:
    """The tunable values, the functions by name, and the imports of a module."""
    tune: dict[str, Sequence[Any]] = {}
    functions: dict[str, str] = {}
    imports: list[str] = []
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(ast.unparse(node))
        elif isinstance(node, ast.Assign):
            tune = ast.literal_eval(node.value)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            functions[node.name] = "\n".join(lines[first : node.end_lineno])
    return tune, functions, imports


CHAIN = Expert(
    "chain", CARD, _fits, _choices, _write,
    roles={"convolution": ALGORITHM, "precision": ALGORITHM, "passes": FUSION},
    reasons={
        ("convolution", "own"): "the convolution is a product of its own, with what follows in its epilogue",
        ("convolution", "library"): "the convolution is left to PyTorch's own kernels, and everything around it is fused",
        **{key: reason for key, reason in REASONS.items() if key[0] == "passes"},
        **PRECISIONS,
    },
)  # fmt: skip

"""Which inputs follow the first: other shapes, strided and shifted views, other scales, structure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from workbench.judge.context import Context
from workbench.judge.correctness import inputsets
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.emulation.shrink import SMALL_SIZES
from workbench.judge.trial import Trial

LARGE_BYTES = 8 << 20
"""Inputs beyond this are large."""

_LINEAR = frozenset(
    {
        "mm", "bmm", "addmm", "baddbmm", "mv", "dot", "convolution", "sum", "cumsum", "add", "sub", "rsub", "neg", "t", "transpose",
        "permute", "view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "slice", "select", "cat", "clone", "contiguous",
        "avg_pool2d", "repeat", "stack", "matmul", "linear",
    }
)  # fmt: skip


def size_of(kind: InputSet) -> int:
    """Bytes of its inputs."""
    return sum(spec.nbytes for spec in kind.specs)


def light_set(context: Context, trial: Trial, first: InputSet) -> InputSet:
    """Where the many small questions are asked: in quick mode not at large sizes, where each takes as long as a whole verdict should."""
    smallest = smallest_set(context)
    return first if trial.mode == "full" or size_of(first) <= LARGE_BYTES else smallest


def others(context: Context, trial: Trial, first: InputSet, light: InputSet) -> Iterator[InputSet]:
    """The rest of the sets of differing shape, then variations of `light` that it makes sense to try."""
    full = trial.mode == "full"
    yield from (kind for kind in context.input_sets() if kind is not first and kind is not light)
    if full:
        yield from context.neighbours()
    if (context.measured or full) and (specs := inputsets.strided(light.specs)):
        yield InputSet(f"{light.name}, strided", specs, light.own_shape, optional=True)
    scales = 0
    for factor in (64.0, 1e-3):
        specs = inputsets.scaled(light.specs, factor)
        if specs and scales <= full and _stays_finite(context, specs):
            scales += 1
            yield InputSet(f"{light.name}, values ×{factor:g}", specs, light.own_shape)
    if full and (specs := inputsets.offset(light.specs, 1000.0)) and _stays_finite(context, specs):
        yield InputSet(f"{light.name}, mean 1000", specs, light.own_shape)
    structures: Sequence[inputsets.Structure] = ("sorted", "ramp", "outliers", "equal") if full else ("sorted",)
    smallest = smallest_set(context)
    for structure in structures:
        yield InputSet(f"{smallest.name}, {structure}", smallest.specs, smallest.own_shape, structure)
    if is_linear(context):
        yield InputSet(f"{smallest.name}, whole numbers", smallest.specs, smallest.own_shape, "whole")
    if full:
        yield InputSet(f"{smallest.name}, at odd addresses", smallest.specs, smallest.own_shape, optional=True, shift=1)


def smallest_set(context: Context) -> InputSet:
    """The smallest set with a few tiles' worth of elements."""
    sets = context.input_sets()
    return min([kind for kind in sets if not kind.name.startswith(SMALL_SIZES)] or sets, key=size_of)


def is_linear(context: Context) -> bool:
    """Whether the op only adds and multiplies by its inputs, in single precision: then whole numbers come out exactly."""
    task = context.task
    ops = task.graph.ops()
    single = all(output.dtype == "float32" for output in task.outputs) and all(
        spec.dtype == "float32" for spec in task.inputs if spec.is_tensor
    )
    return bool(ops) and single and context.allowed() == 0 and set(ops) <= _LINEAR and bool(set(ops) & {"mm", "bmm", "addmm", "convolution", "sum", "cumsum", "baddbmm", "mv"})  # fmt: skip  # noqa: E501


def _stays_finite(context: Context, specs: Sequence[Any]) -> bool:
    from workbench.inputs import make_inputs

    with contextlib.suppress(Exception):
        outputs = context.reference()(*make_inputs(specs, 1, context.place))
        return all(bool(torch.isfinite(output).all()) for output in outputs if output.is_floating_point())
    return False

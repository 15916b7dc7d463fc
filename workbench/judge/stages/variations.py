"""Which inputs follow the first: other shapes, strided views, other scales, structure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from workbench.judge import inputsets
from workbench.judge.context import Context
from workbench.judge.inputsets import InputSet
from workbench.judge.trial import Trial


def others(context: Context, trial: Trial, first: InputSet) -> Iterator[InputSet]:
    """The rest of the sets of differing shape, then variations of the first that it makes sense to try."""
    yield from (kind for kind in context.input_sets() if kind is not first)
    if context.measured and (specs := inputsets.strided(first.specs)):
        yield InputSet(f"{first.name}, strided", specs, first.own_shape)
    for factor in (64.0, 1e-3):
        specs = inputsets.scaled(first.specs, factor)
        if specs and _stays_finite(context, specs):
            yield InputSet(f"{first.name}, values ×{factor:g}", specs, first.own_shape)
            break
    if trial.mode == "full" and (specs := inputsets.offset(first.specs, 1000.0)):
        yield InputSet(f"{first.name}, mean 1000", specs, first.own_shape)
    structures: Sequence[inputsets.Structure] = ("sorted", "outliers", "equal") if trial.mode == "full" else ("sorted",)
    smallest = min(context.input_sets(), key=lambda kind: sum(spec.nbytes for spec in kind.specs))
    for structure in structures:
        yield InputSet(f"{smallest.name}, {structure}", smallest.specs, smallest.own_shape, structure)


def _stays_finite(context: Context, specs: Sequence[Any]) -> bool:
    from workbench.inputs import make_inputs

    with contextlib.suppress(Exception):
        outputs = context.reference()(*make_inputs(specs, 1, context.place))
        return all(bool(torch.isfinite(output).all()) for output in outputs if output.is_floating_point())
    return False

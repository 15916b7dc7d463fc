"""Fourth stage: fresh content behind the same pointers, other shapes, other scales, structure; earlier outputs must not have changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from workbench.judge import inputsets
from workbench.judge.context import Context
from workbench.judge.inputsets import InputSet
from workbench.judge.launches import Recording
from workbench.judge.stages.running import FirstRun, may_refuse
from workbench.judge.trial import Trial


def check(context: Context, trial: Trial, first: FirstRun, recording: Recording) -> None:
    """Everything that a right candidate withstands.

    Raises:
        Stop: with a witness.
    """
    caller = first.caller
    caller.check(first.kind, poison="large", rewrite=True, known=[output.error for output in first.expected.outputs])
    caller.check_kept(0, first.expected, first.outputs, first.kind)
    for number, kind in enumerate(_others(context, trial, first.kind)):
        with may_refuse(trial, kind):
            caller.check(kind, poison="nan" if number % 2 else "large")
    if not context.measured:
        shapes = dict.fromkeys(kind.shape for kind in context.input_sets() if kind.name in trial.input_sets)
        trial.judged_by = f"interpreter ({', '.join(shapes)})"
    _check_dots(context, trial, recording)


def _check_dots(context: Context, trial: Trial, recording: Recording) -> None:
    """The interpreter multiplies in full precision, whatever the kernel asks for; so the compiled code is asked."""
    uses = {use.precision for launch in recording.launches for use in launch.dots if use.dtype in ("float32", "fp32", "f32")}
    if not context.measured and any(use.startswith("tf32") and use != "tf32x3" for use in uses) and context.allowed() < 2.0**-11:
        trial.precision = trial.precision or "TF32"


def _others(context: Context, trial: Trial, first: InputSet) -> Iterator[InputSet]:
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

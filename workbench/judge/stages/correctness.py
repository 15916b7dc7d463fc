"""Fourth stage: fresh content behind the same pointers, other shapes, other scales, structure; earlier outputs must not have changed."""

from __future__ import annotations

from workbench.judge.context import Context
from workbench.judge.launches import Recording
from workbench.judge.stages.running import FirstRun, may_refuse
from workbench.judge.stages.variations import others
from workbench.judge.trial import Trial


def check(context: Context, trial: Trial, first: FirstRun, recording: Recording) -> None:
    """Everything that a right candidate withstands.

    Raises:
        Stop: with a witness.
    """
    caller = first.caller
    caller.check(first.kind, poison="large", rewrite=True, known=[output.error for output in first.expected.outputs])
    caller.check_kept(0, first.expected, first.outputs, first.kind)
    for number, kind in enumerate(others(context, trial, first.kind)):
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

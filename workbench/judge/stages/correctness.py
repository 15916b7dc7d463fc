"""Fourth stage: fresh content behind the same pointers, other shapes, other scales, structure; earlier outputs must not have changed."""

from __future__ import annotations

import torch

from workbench.candidate import Verdict, Witness
from workbench.judge.context import Context, Workers
from workbench.judge.correctness import compare
from workbench.judge.correctness.checks import Caller
from workbench.judge.correctness.expected import Expected, same
from workbench.judge.correctness.inputsets import InputSet, scaled
from workbench.judge.protocol import state
from workbench.judge.recording.launches import Recording
from workbench.judge.stages import full_size, replays, side_effects
from workbench.judge.stages.running import FirstRun, may_refuse
from workbench.judge.stages.variations import light_set, others
from workbench.judge.trial import Stop, Trial
from workbench.records import encode

RANDOM_CALLS = 4
"""Calls on the same inputs, for an op that draws random numbers."""

_OTHER_SCALES = (0.75, 1.3, 0.55, 1.7, 2.2, 0.4, 2.9, 3.7, 0.3, 4.9, 6.3, 0.2)


def check(context: Context, trial: Trial, workers: Workers, first: FirstRun, recording: Recording) -> None:
    """Everything that a right candidate withstands.

    Raises:
        Stop: with a witness.
    """
    caller = first.caller
    again = caller.check(first.kind, poison="large", rewrite=True, known=[output.error for output in first.expected.outputs])
    kept = [replays.Kept(0, first.expected, first.outputs), replays.Kept(1, *again)]
    light = light_set(context, trial, first.kind)
    if light is not first.kind:
        replays.look_again(caller, first.kind, kept)
        kept = _kept_on(trial, caller, light)
        light = light if kept else first.kind
    if kept:
        replays.check(caller, light, kept, most=4 if trial.mode == "full" else 2)
    for number, kind in enumerate(others(context, trial, first.kind, light)):
        with may_refuse(trial, kind):
            expected, outputs = caller.check(kind, poison=("large", "nan", "other")[number % 3])
            if kind.structure == "whole":
                _check_whole(trial, expected, outputs)
    if first.expected.random:
        _check_draws(caller, light)
    elif trial.mode == "full":
        _check_repeats(trial, caller, first.kind)
    _check_new_weights(context, trial, caller, light)
    if not context.measured:
        shapes = dict.fromkeys(kind.shape for kind in context.input_sets() if kind.name in trial.input_sets)
        trial.judged_by = f"interpreter ({', '.join(shapes)})"
        full_size.check(context, trial, workers)
    _check_dots(context, trial, recording)
    _check_bits(trial, caller, first.expected, light)


def _check_bits(trial: Trial, caller: Caller, expected: Expected, light: InputSet) -> None:
    """Results that were rounded to fewer bits than their dtype has are of lower precision, although each is within its bounds.

    Where all have had few bits so far, and are few themselves, further calls tell.
    """
    for factor in _OTHER_SCALES:
        if not any(grid.suspicious for grid in caller.grids.values()):
            break
        kind = InputSet(f"{light.name}, values ×{factor:g}", scaled(light.specs, factor) or light.specs, light.own_shape)
        with may_refuse(trial, kind):
            caller.check(kind, poison="nan")
    for number, grid in caller.grids.items():
        bits = grid.kept_bits(expected.outputs[number].reference.dtype)
        if bits is not None:
            trial.labels.add(f"its results have at most {bits} bits behind the binary point")
            trial.precision = trial.precision or f"a type of {bits} bits behind the binary point"


def _kept_on(trial: Trial, caller: Caller, kind: InputSet) -> list[replays.Kept]:
    """Two calls on inputs of another shape; none if the candidate refuses it."""
    kept: list[replays.Kept] = []
    with may_refuse(trial, kind):
        for rewrite in (False, True):
            number = caller.calls
            known = [output.error for output in kept[0].expected.outputs] if kept else None
            kept.append(replays.Kept(number, *caller.check(kind, poison="large" if rewrite else "nan", rewrite=rewrite, known=known)))
    return kept if len(kept) == 2 else []


def _check_dots(context: Context, trial: Trial, recording: Recording) -> None:
    """The interpreter multiplies in full precision, whatever the kernel asks for; so the compiled code is asked."""
    uses = {use.precision for launch in recording.launches for use in launch.dots if use.dtype in ("float32", "fp32", "f32")}
    if not context.measured and any(use.startswith("tf32") and use != "tf32x3" for use in uses) and context.allowed() < compare.TF32:
        trial.precision = trial.precision or "TF32"


def _check_whole(trial: Trial, expected: Expected, outputs: list[torch.Tensor]) -> None:
    """Sums of whole numbers that single precision holds exactly come out exactly, in whatever order they are added."""
    exact = all(
        output.reference.is_floating_point() and bool((output.reference.double() == output.truth).all())
        and float(output.truth.abs().max()) < 2**24
        for output in expected.outputs if output.reference.numel()
    )  # fmt: skip
    if exact and not all(
        same(got.to(right.reference.device), right.reference) for got, right in zip(outputs, expected.outputs, strict=True)
    ):
        trial.labels.add("rounds whole numbers that single precision holds exactly")
        trial.precision = trial.precision or "a coarser type"


def _check_repeats(trial: Trial, caller: Caller, kind: InputSet) -> None:
    """Three calls on the same inputs, each with other poison in uninitialised memory: a spread beyond honest error is a fault."""
    expected, outputs = caller.check(kind, poison="nan")
    draw = caller.last
    for poison in ("large", "other"):
        _, again = caller.check(kind, poison=poison, draw=draw)
        for number, (one, two, right) in enumerate(zip(outputs, again, expected.outputs, strict=True)):
            if same(one, two):
                continue
            trial.labels.add("not deterministic")
            apart = (one.double() - two.double()).abs().nan_to_num()
            spread, bound = float(apart.max()), 4 * max(right.error.noise, right.error.max)
            if one.is_floating_point() and spread <= max(
                bound, 8 * torch.finfo(one.dtype).eps * float(right.truth.abs().nan_to_num().max())
            ):
                continue
            place = int(apart.argmax())
            raise Stop(
                Verdict.WRONG, f"two calls on the same inputs differ by {spread:.3g} where {bound:.3g} is the reference's own error",
                Witness(draw.seed if draw else 0, kind.name, number, (place,), float(two.reshape(-1)[place]), float(one.reshape(-1)[place]), bound, "not deterministic"),  # noqa: E501
            )  # fmt: skip


def _check_new_weights(context: Context, trial: Trial, caller: Caller, kind: InputSet) -> None:
    """New parameters in the same memory: what was made of the old ones must not be used any more. The same call shows what it leaves in
    the model's buffers.
    """
    module = caller.reference.module
    if module is None:
        side_effects.label(trial, trial.task.unreached)
        return
    redrawn = False
    if "parameters not redrawn" not in trial.labels and context.state_specs:
        seed = trial.next_seed()
        answer = caller.worker.ask({"do": "state", "specs": encode(context.state_specs), "seed": seed}, context.limits.load)
        redrawn = answer.get("redrawn") is True
    if redrawn:
        state.redraw(module, context.state_specs, seed, context.place)
        caller.forget()
    side_effects.check(context, trial, caller, kind, lambda: _check_once_more(caller, kind, redrawn), anyway=redrawn)


def _check_once_more(caller: Caller, kind: InputSet, redrawn: bool) -> None:
    try:
        caller.check(kind, poison="nan")
    except Stop as stop:
        if stop.verdict is Verdict.WRONG and redrawn:
            raise Stop(stop.verdict, f"after its parameters were changed in place: {stop.reason}", stop.witness) from None
        raise


def _check_draws(caller: Caller, kind: InputSet) -> None:
    """Several calls of a random op on the same inputs: they must differ, and together be the reference's distribution."""
    expected, outputs = caller.check(kind, poison="nan")
    draw, calls = caller.last, [outputs]
    for number in range(RANDOM_CALLS - 1):
        calls.append(caller.check(kind, poison=("large", "other")[number % 2], draw=draw)[1])
    for number, right in enumerate(expected.outputs):
        if right.draws is None:
            continue
        results = [call[number].to(right.reference.device) for call in calls]
        fault = right.draws.together(results[0], results[1]) or right.draws.together(results[1], results[-1]) or right.draws.pooled(results)
        if fault is not None:
            witness = Witness(draw.seed if draw else 0, kind.name, number, (), fault.got, fault.expected, fault.bound, "distribution")
            raise Stop(Verdict.WRONG, f"{fault.reason} on {kind.name}", witness)

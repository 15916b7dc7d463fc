"""Whether a model's call leaves in its buffers what the reference's call does, see `correctness.buffers`. Asked of one call of a judging.

A candidate that has the buffers and leaves something else in them is wrong: with the same weights it would be another model in eval mode.
One that has no such buffers can't hold them, as KernelBench permits; it gets a label, and so does everyone where the Task leaves its
state free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from workbench.candidate import NOT_UPDATED, Verdict, Witness
from workbench.judge.context import Context
from workbench.judge.correctness import buffers
from workbench.judge.correctness.checks import Caller
from workbench.judge.correctness.compare import ROUND_OFF, compare
from workbench.judge.correctness.expected import ExpectedOutput, expect, same
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.protocol.shared import layout
from workbench.judge.trial import Stop, Trial

_NAMED = 4


def check(context: Context, trial: Trial, caller: Caller, kind: InputSet, call: Callable[[], None], *, anyway: bool) -> None:
    """Before the call both sides get the same buffers, and afterwards those of the candidate are compared.

    Args:
        call: has the caller check one call on `kind`; `anyway` where there is more to it than the buffers.

    Raises:
        Stop: it leaves something else in buffers that it has.
    """
    names, module = context.updates(), caller.reference.module
    start = buffers.values(module, names) if module is not None else {}
    held = _set(caller, start) if start else []
    if anyway or held:
        call()
    if module is None or not held:
        label(trial, names)
        return
    assert caller.last is not None
    reference = buffers.as_results(caller.reference, start)
    expected = expect(reference, caller.last.inputs, known=context.buffer_errors.get(kind.name))
    context.buffer_errors[kind.name] = [output.error for output in expected.outputs]
    buffers.put(module, start)
    left = dict(zip(names, expected.outputs, strict=True))
    faults = {name: "is not updated" for name in names if name not in held}
    for name, got in _get(caller, {name: start[name] for name in held}).items():
        if fault := _fault(trial, got, left[name], start[name]):
            faults[name] = fault
    stale = [name for name in held if name in faults]
    if stale and trial.task.state == "kept":
        said = ", ".join(f"{name} {faults[name]}" for name in stale[:_NAMED])
        more = f", and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
        raise Stop(
            Verdict.WRONG, f"its buffers differ from the reference's after a call: {said}{more}",
            Witness(caller.last.seed, kind.name, pattern="buffers"),
        )  # fmt: skip
    label(trial, [name for name in names if name in faults])


def label(trial: Trial, names: Sequence[str]) -> None:
    """Notes the buffers that a call of the reference updates, and one of the candidate does not."""
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        trial.labels.add(f"{NOT_UPDATED}{', '.join(names[:_NAMED])}{more}")


def _set(caller: Caller, start: buffers.Values) -> list[str]:
    """Gives the candidate's buffers these values. Returns the names of those that it has, as far as it says."""
    offsets = layout([value.numel() * value.element_size() for value in start.values()])
    caller.worker.shared.clear()
    for offset, value in zip(offsets, start.values(), strict=True):
        caller.worker.shared.write(offset, value)
    return _ask(caller, start, offsets, write=True)


def _get(caller: Caller, start: buffers.Values) -> dict[str, torch.Tensor]:
    """What the candidate's buffers hold now: bytes of the shapes and dtypes that are expected."""
    offsets = layout([value.numel() * value.element_size() for value in start.values()])
    caller.worker.shared.clear()
    held = _ask(caller, start, offsets, write=False)
    return {
        name: caller.worker.shared.read(offset, value.shape, value.dtype, caller.device)
        for offset, (name, value) in zip(offsets, start.items(), strict=True) if name in held
    }  # fmt: skip


def _ask(caller: Caller, start: buffers.Values, offsets: Sequence[int], *, write: bool) -> list[str]:
    described = [[name, list(value.shape), str(value.dtype).removeprefix("torch.")] for name, value in start.items()]
    answer = caller.worker.ask({"do": "buffers", "buffers": described, "offsets": list(offsets), "write": write}, caller.timeout)
    held = answer.get("held")
    return [name for name in start if isinstance(held, list) and name in held]


def _fault(trial: Trial, got: torch.Tensor, right: ExpectedOutput, start: torch.Tensor) -> str:
    if same(got, start) and _moves(right, start):
        return "is not updated"
    found = compare(got, right, allowed=trial.allowed)
    if not found.right:
        return f"is updated otherwise ({found.reason})"
    if found.precision and not trial.precision:
        # In few elements another formula (a variance divided by n) looks like coarse rounding, of which the outputs show nothing.
        return f"is updated otherwise (off by {found.ratio:.3g} times its bound)"
    trial.compared(found.matched, found.ratio, found.precision)
    return ""


def _moves(right: ExpectedOutput, start: torch.Tensor) -> bool:
    """Whether the update is more than rounding, so that one who leaves it out can't be right."""
    if right.draws is not None or not start.is_floating_point():
        return not same(right.reference, start)
    apart = float((right.truth - start.double()).abs().nan_to_num().max())
    return apart > 4 * ROUND_OFF.get(start.dtype, 0.0) * max(right.scale, float(start.double().square().mean().sqrt()))

"""Why an evaluation came out as it did, and the one change to make next.

A diagnosis is made from the evaluation and the task alone, so that it can be made again from the store. Its directive goes to people and to
language models alike: it names the kernel, says what to change, and gives the figures that it rests on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from workbench.candidate import Diagnosis, Evaluation, Verdict
from workbench.explain import failures, limits
from workbench.explain.cuda_wording import in_cuda, is_cuda, misfit
from workbench.task import Task

AT_FLOOR = 1.15
"""A time within this factor of the floor leaves nothing worth a change."""


def diagnose(evaluation: Evaluation, task: Task, floor_us: float) -> Diagnosis:
    """One diagnosis with one directive.

    Args:
        evaluation: of any verdict.
        task: what it is an evaluation of.
        floor_us: the roofline, in µs.
    """
    found = _diagnose(evaluation, task, floor_us)
    if not is_cuda(evaluation):
        return found
    return replace(found, summary=in_cuda(found.summary), directive=in_cuda(found.directive))


def _diagnose(evaluation: Evaluation, task: Task, floor_us: float) -> Diagnosis:
    if evaluation.verdict is Verdict.RIGHT:
        return _of_working(evaluation, task, floor_us)
    if misfit(evaluation):  # whatever came of it
        return Diagnosis(evaluation.id, *failures.launch(evaluation, task))
    explain: Callable[[Evaluation, Task], tuple[str, str, str, tuple[str, ...]]] = {
        Verdict.DOES_NOT_BUILD: failures.build,
        Verdict.CRASHED: failures.launch,
        Verdict.TIMED_OUT: failures.timeout,
        Verdict.WRONG: failures.mismatch,
        Verdict.LOWER_PRECISION: failures.precision,
        Verdict.REFUSED: failures.refused,
    }.get(evaluation.verdict, failures.unknown)
    kind, summary, directive, evidence = explain(evaluation, task)
    return Diagnosis(evaluation.id, kind, summary, directive, evidence)


def _of_working(evaluation: Evaluation, task: Task, floor_us: float) -> Diagnosis:
    time = evaluation.timing.median_us if evaluation.timing is not None else None
    headroom = time / floor_us if time is not None and floor_us > 0 else None
    modelled = "modelled " if evaluation.timing is not None and evaluation.timing.modelled else ""
    figures = (f"{modelled}time {time:.1f} µs, floor {floor_us:.1f} µs",) if time is not None else ()
    if headroom is not None and headroom <= AT_FLOOR:
        return Diagnosis(
            evaluation.id,
            "floor",
            f"It runs at {1 / headroom:.0%} of the speed that the hardware allows.",
            "Nothing is left to gain in this kernel: accept it, or fuse a neighbouring op into it.",
            figures,
            headroom,
        )
    found = limits.find(evaluation, task, floor_us)
    return Diagnosis(evaluation.id, found.kind, found.summary, found.directive, (*figures, *found.evidence), headroom)

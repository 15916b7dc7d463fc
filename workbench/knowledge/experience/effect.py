"""What a change did, as one signed figure."""

from __future__ import annotations

from workbench.candidate import Evaluation, Verdict

_NO_FAULT_OF_ITS_OWN = {Verdict.NOT_JUDGED, Verdict.TIME_NOT_CONFIRMED}


def effect_of(before: Evaluation, after: Evaluation) -> float | None:
    """The parent's time over the child's, minus 1; None where there is nothing to compare.

    A child that fails where its parent was right has -1, the limit of an endless time. A repair that makes it right has 1; one that fails
    no later than its parent has -1, and one that fails later has 0.
    """
    if before.verdict in _NO_FAULT_OF_ITS_OWN or after.verdict in _NO_FAULT_OF_ITS_OWN:
        return None
    if before.verdict.passes:
        if not after.verdict.passes:
            return -1.0
        if not before.time_us or not after.time_us or _modelled(before) != _modelled(after):
            return None
        return before.time_us / after.time_us - 1.0
    if after.verdict.passes:
        return 1.0
    return 0.0 if after.verdict.rank > before.verdict.rank else -1.0


def _modelled(evaluation: Evaluation) -> bool:
    return evaluation.timing is not None and evaluation.timing.modelled

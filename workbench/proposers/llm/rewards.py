"""What an answer was worth, for the bandit: a figure from 0 to 1 for each kind of work."""

from __future__ import annotations

import math

from workbench.brief import Brief
from workbench.candidate import Evaluation, Verdict

_BEST_RANK = Verdict.RIGHT.rank


def reward_of(brief: Brief, evaluation: Evaluation) -> float | None:
    """The reward of the candidate that answered `brief`; None where the judge could not tell.

    A seed has to be right. A repair has to be right, or at least fail later than its parent. A step or crossover has to be right and faster
    than its (faster) parent: 0.2 for right without a gain, 1 for twice as fast.
    """
    verdict = evaluation.verdict
    if verdict is Verdict.NOT_JUDGED:
        return None
    if brief.kind == "seed":
        return 1.0 if verdict.passes else verdict.rank / (2 * _BEST_RANK)
    if brief.kind == "repair":
        before = max((parent.evaluation.verdict.rank for parent in brief.parents), default=0)
        return 1.0 if verdict.passes else max(0, verdict.rank - before) / (2 * _BEST_RANK)
    if not verdict.passes:
        return 0.0
    times = [parent.evaluation.time_us for parent in brief.parents if parent.evaluation.time_us]
    if not times or not evaluation.time_us:
        return 0.5
    gain = math.log2(min(times) / evaluation.time_us)
    return 0.2 if gain < 0.02 else 0.3 + 0.7 * min(1.0, gain)

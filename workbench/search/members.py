"""A candidate as the search sees it: with everything that was found of it so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.brief import Parent
from workbench.build.tune import read_tune
from workbench.candidate import Candidate, Diagnosis, Evaluation
from workbench.records import encode

Order = tuple[int, float, float, int]


def point_key(parameters: Mapping[str, Any]) -> str:
    """One text for equal points of a tunable space."""
    return json.dumps(encode(parameters), sort_keys=True)


class Member:
    """One judged candidate. It is the same object on every island that it lives on.

    Attributes:
        number: counts members in the order in which they were told; breaks ties.
        repairs: how many repairs lie between it and the candidate whose plan it still carries out.
        plan: that plan.
        space: its tunable space; empty where it has none, or none that can be read.
        points: the time of each point tried, None where the point does not pass; points in flight are in `flying`.
    """

    def __init__(
        self, number: int, candidate: Candidate, evaluation: Evaluation, diagnosis: Diagnosis | None,
        descriptors: tuple[str, ...], repairs: int, plan: str,
    ) -> None:  # fmt: skip
        self.number = number
        self.candidate = candidate
        self.evaluation = evaluation
        self.diagnosis = diagnosis
        self.descriptors = frozenset(descriptors)
        self.repairs = repairs
        self.plan = plan
        self.space = _space(candidate.source)
        first = {name: values[0] for name, values in self.space.items()} | dict(evaluation.parameters)
        self.first = first
        self.points: dict[str, float | None] = {point_key(first): evaluation.time_us}
        self.flying: set[str] = set()

    @property
    def id(self) -> str:
        return self.candidate.id

    @property
    def time_us(self) -> float | None:
        return self.evaluation.time_us

    @property
    def right(self) -> bool:
        return self.evaluation.verdict.passes

    @property
    def order(self) -> Order:
        """Sorts the better first: right ones by time; then failing ones by how far they came and how much of them is right."""
        found = self.evaluation
        time = found.time_us if found.time_us is not None else float("inf")
        return (-found.verdict.rank, time, -(found.matched or 0.0), self.number)

    @property
    def best_point(self) -> Mapping[str, Any]:
        """The parameters of its best evaluation, defaults filled in."""
        return self.first | dict(self.evaluation.parameters)

    def tried_point(self, evaluation: Evaluation, diagnosis: Diagnosis | None, descriptors: tuple[str, ...]) -> bool:
        """Takes in the evaluation of a further point; True if it is now the best one."""
        key = point_key(self.first | dict(evaluation.parameters))
        self.flying.discard(key)
        self.points[key] = evaluation.time_us
        before, after = self.time_us, evaluation.time_us
        if after is None or (before is not None and after >= before):
            return False
        self.evaluation, self.diagnosis, self.descriptors = evaluation, diagnosis, frozenset(descriptors)
        return True

    def as_parent(self) -> Parent:
        return Parent(candidate=self.candidate, evaluation=self.evaluation, diagnosis=self.diagnosis)


def _space(source: str) -> dict[str, tuple[Any, ...]]:
    # A TUNE that can't be read fails in the build, where the person sees why; here it only means that nothing can be tuned.
    try:
        return dict(read_tune(source))
    except ValueError:
        return {}

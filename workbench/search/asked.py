"""What has been asked: briefs on their way, what came back for each, and whose turn it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from workbench.brief import Brief, Proposal
from workbench.candidate import Candidate, Diagnosis, Evaluation
from workbench.errors import OrderError
from workbench.search.ideas import Idea


@dataclass
class Asked:
    """A brief, the idea behind it, and the answers to it so far. `told` is held until every earlier ask is told."""

    brief: Brief
    idea: Idea
    received: Proposal | None = None
    told: tuple[Proposal, Evaluation | None, Diagnosis | None] | None = None

    def given(self) -> Proposal | None:
        """The answer, where the idea brought it along."""
        given = self.idea.given
        if given is None:
            return None
        return Proposal(brief=self.brief.id, candidate=given if self.idea.kind == "tune" else replace(given, id=self.brief.candidate))

    def as_in_the_run(self, candidate: Candidate, entry: str) -> Candidate:
        """A proposer's candidate with the id, island, parents and (for a repair) the plan that the brief implies."""
        brief, plan = self.brief, candidate.plan
        if brief.kind == "repair":
            held = self.idea.parents[0]
            kept = f"{held.plan or held.id} – repair {held.repairs + 1}"
            if not plan.startswith(kept):  # as it does where a run is replayed
                plan = f"{kept}: {plan}" if plan else kept
        return replace(
            candidate, id=brief.candidate, entry=entry, island=brief.island.name, brief=brief.id, plan=plan,
            parents=tuple(parent.candidate.id for parent in brief.parents),
        )  # fmt: skip

    def expects(self, evaluation: Evaluation | None) -> Proposal:
        """The answer that was received; an OrderError where this evaluation can't be of it."""
        received = self.received
        assert received is not None
        if evaluation is None and received.candidate is not None:
            raise OrderError(f"tell: brief {self.brief.id} has a candidate, so it needs its evaluation")
        if evaluation is not None and (received.candidate is None or evaluation.candidate != received.candidate.id):
            expected = received.candidate.id if received.candidate else "no candidate"
            raise OrderError(f"tell: brief {self.brief.id} waits for {expected}, this evaluation is of {evaluation.candidate}")
        return received


class AskQueue:
    """All asks of a search, in order."""

    def __init__(self) -> None:
        self._all: dict[str, Asked] = {}
        self._waiting: deque[Asked] = deque()

    def __len__(self) -> int:
        """How many were ever asked."""
        return len(self._all)

    def add(self, asked: Asked) -> None:
        self._all[asked.brief.id] = asked
        self._waiting.append(asked)

    def find(self, call: str, brief: str) -> Asked:
        """The ask of that brief; an OrderError names the call that was wrong."""
        try:
            return self._all[brief]
        except KeyError:
            raise OrderError(f"{call}: brief {brief!r} was never asked") from None

    @property
    def empty(self) -> bool:
        """Whether everything asked was told and learnt from."""
        return not self._waiting

    def open(self) -> tuple[Brief, ...]:
        """Asked and not told, in ask order."""
        return tuple(asked.brief for asked in self._waiting if asked.told is None)

    def ready(self) -> Iterator[Asked]:
        """Takes out those that were told, in ask order, up to the first that was not."""
        while self._waiting and self._waiting[0].told is not None:
            yield self._waiting.popleft()

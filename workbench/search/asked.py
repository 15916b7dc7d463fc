"""What has been asked: briefs on their way, what came back for each, and whose turn it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.brief import Brief, Proposal
from workbench.candidate import Diagnosis, Evaluation
from workbench.errors import OrderError
from workbench.search.ideas import Idea


@dataclass
class Asked:
    """A brief, the idea behind it, and the answers to it so far. `told` is held until every earlier ask is told."""

    brief: Brief
    idea: Idea
    received: Proposal | None = None
    told: tuple[Proposal, Evaluation | None, Diagnosis | None] | None = None


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

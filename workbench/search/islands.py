"""An island: a role, and the population that lives under it."""

from __future__ import annotations

from collections import deque

from workbench.brief import Role
from workbench.search.members import Member
from workbench.search.selection import NOVELTY, pick_elites


class Island:
    """One population. Children of its members live on it; elites of other islands come by migration alone.

    Attributes:
        index: its place in the order of turns.
        asked: the turns it has had; the island with the fewest is next.
        seeds: experts that are still to be tried here.
        repairs: failing members whose chain has links left.
        misses: proposals in a row that brought no candidate.
        stale: answers since its best last improved, or since an elite last came in.
        tuned_last: whether its last turn went to a tunable point; tuning and structure take turns.
    """

    def __init__(self, index: int, role: Role, novelty: float = NOVELTY) -> None:
        self.index = index
        self.role = role
        self.members: dict[str, Member] = {}
        self.asked = 0
        self.open = 0
        self.seeds: deque[str] = deque()
        self.repairs: dict[str, Member] = {}
        self.misses = 0
        self.stale = 0
        self.tuned_last = False
        self._best_us: float | None = None
        self._novelty = novelty

    @property
    def name(self) -> str:
        return self.role.name

    def elites(self) -> tuple[Member, ...]:
        return pick_elites(self.members.values(), novelty=self._novelty)

    @property
    def best_us(self) -> float | None:
        return self._best_us

    def add(self, member: Member) -> None:
        """A child is born here, or an elite comes in."""
        self.members[member.id] = member
        self.take_note(member)

    def take_note(self, member: Member) -> None:
        """Something new was found of a member: the island is fresh again if that is its best time so far."""
        time = member.time_us
        if time is not None and (self._best_us is None or time < self._best_us):
            self._best_us = time
            self.stale = 0

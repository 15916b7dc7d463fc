"""Everybody who was judged, on their islands: births, tunable points, the best, and elites that move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from workbench.brief import Role
from workbench.candidate import Candidate, Diagnosis, Evaluation, Verdict
from workbench.errors import NoSuchCandidateError
from workbench.events import BestChanged, Event, Migrated, Noted
from workbench.search.ideas import MISSES, Idea
from workbench.search.islands import Island
from workbench.search.mechanisms import DEFAULT, Mechanisms
from workbench.search.members import Member
from workbench.search.odds import Odds
from workbench.search.roles import EVERYTHING
from workbench.search.selection import NOVELTY

STALE = 6
"""Answers without a better best after which an island takes in an elite of another."""

Describe = Callable[[Candidate, Evaluation], Sequence[str]]


class Population:
    """The members of one search.

    Attributes:
        islands: in the order of turns.
        best: the fastest right one; `best_us` is its time.
        odds: of repairs against fresh candidates.
    """

    def __init__(self, roles: Sequence[Role], repairs: int, describe: Describe, mechanisms: Mechanisms = DEFAULT) -> None:
        roles = roles if mechanisms.islands else (EVERYTHING,)
        novelty = NOVELTY if mechanisms.diversity else 0.0
        self.islands = tuple(Island(index, role, novelty) for index, role in enumerate(roles))
        self.best: Member | None = None
        self.best_us: float | None = None
        self.odds = Odds()
        self._repairs = repairs if mechanisms.repair else 0
        self._migrates = mechanisms.migration
        self._weighs = mechanisms.odds and mechanisms.repair
        self._repairs_first = True
        self._describe = describe
        self._members: dict[str, Member] = {}

    def spread(self, experts: Sequence[str]) -> None:
        """Every island starts from an expert; with more experts than islands some get two, with fewer some share one."""
        for place in range(max(len(experts), len(self.islands)) if experts else 0):
            self.islands[place % len(self.islands)].seeds.append(experts[place % len(experts)])

    def earlier(self, elites: Sequence[Candidate], why: str = "an elite of the earlier run, judged again") -> list[Idea]:
        """Elites of an earlier run, to be judged again here; or other candidates that are there already."""
        ideas = []
        for place, elite in enumerate(elites):
            home = self.home(elite) or self.islands[place % len(self.islands)]
            given = replace(elite, id="", island=home.name, parents=(), brief="")
            ideas.append(Idea("seed", home, given=given, directive=why, counts=False))
        return ideas

    def wake(self) -> None:
        """Islands whose proposers had nothing are asked again."""
        for island in self.islands:
            island.misses = 0

    def judged(self, idea: Idea, candidate: Candidate, evaluation: Evaluation, diagnosis: Diagnosis | None) -> list[Event]:
        """A child is born, or a further point of a member was tried: a new best, a migration and a turn of the odds may follow."""
        descriptors = tuple(self._describe(candidate, evaluation))
        island = idea.island
        island.stale += 1
        if idea.kind == "tune":
            member = idea.parents[0]
            member.tried_point(evaluation, diagnosis, descriptors)
            for home in self.islands:
                if member.id in home.members:
                    home.take_note(member)
        else:
            member = self._born(idea, candidate, evaluation, diagnosis, descriptors)
            if idea.given is None and not idea.expert:  # what a proposer made of a brief of its own
                self.odds.told(idea.kind, member.right, idea.kind == "repair" and member.order[:3] < idea.parents[0].order[:3])
            island.misses = 0
        return [*self._compare(member), *self._refresh(island), *self._weigh()]

    def _weigh(self) -> list[Event]:
        """Says when repairs begin to wait for fresh candidates, or go first again, once there are some."""
        if not self._weighs or self.odds.favour_repair == self._repairs_first or not any(island.repairs for island in self.islands):
            return []
        self._repairs_first = self.odds.favour_repair
        return [Noted(self.odds.story)]

    def missed(self, island: Island) -> list[Event]:
        """The island's proposers had nothing."""
        island.misses += 1
        island.stale += 1
        return self._refresh(island)

    def migrate(self, member: Member, island: Island) -> Migrated:
        """An elite is copied to another island."""
        source = self.home(member.candidate) or island
        island.add(member)
        island.stale = island.misses = 0
        return Migrated(candidate=member.id, source=source.name, to=island.name)

    def elites(self) -> tuple[Member, ...]:
        """Those of all islands, the fastest first; each once."""
        found = {member.id: member for island in self.islands for member in island.elites()}
        return tuple(sorted(found.values(), key=lambda member: member.order))

    # ---- looking things up

    def member(self, candidate: str) -> Member:
        """The one of that id.

        Raises:
            NoSuchCandidateError: nobody of that id was judged.
        """
        try:
            return self._members[candidate]
        except KeyError:
            raise NoSuchCandidateError(f"the run has judged no candidate {candidate!r}") from None

    def home(self, candidate: Candidate) -> Island | None:
        """Where it was born; None where there is no such island in this search."""
        return next((island for island in self.islands if island.name == candidate.island), None)

    def family(self, member: Member | None) -> frozenset[str]:
        """A member and its descendants."""
        if member is None:
            return frozenset()
        family = {member.id}
        for other in self._members.values():
            if family.intersection(other.candidate.parents):
                family.add(other.id)
        return frozenset(family)

    # ---- what follows from a result

    def _born(
        self, idea: Idea, candidate: Candidate, evaluation: Evaluation, diagnosis: Diagnosis | None, descriptors: tuple[str, ...]
    ) -> Member:  # fmt: skip
        mended = idea.parents[0] if idea.kind == "repair" else None
        member = Member(
            number=len(self._members) + 1, candidate=candidate, evaluation=evaluation, diagnosis=diagnosis,
            descriptors=descriptors, repairs=mended.repairs + 1 if mended else 0, plan=mended.plan if mended else candidate.plan,
        )  # fmt: skip
        self._members[member.id] = member
        idea.island.add(member)
        if not member.right and _mendable(evaluation.verdict) and member.repairs < self._repairs:
            idea.island.repairs[member.id] = member
        return member

    def _compare(self, member: Member) -> list[Event]:
        """A faster right one, or a faster point of the best, is the new best."""
        time = member.time_us
        if time is None or (self.best_us is not None and time >= self.best_us):
            return []
        self.best, self.best_us = member, time
        return [BestChanged(candidate=member.id, evaluation=member.evaluation.id, time_us=time)]

    def _refresh(self, island: Island) -> list[Event]:
        """A stale island, or one whose proposers have nothing, takes in the fastest elite of the others that beats its own."""
        if not self._migrates or (island.stale < STALE and island.misses < MISSES):
            return []
        best = island.best_us
        others = [
            elite for other in self.islands for elite in other.elites()
            if elite.id not in island.members and (best is None or (elite.time_us or 0.0) < best)
        ]  # fmt: skip
        if not others:
            return []
        return [self.migrate(min(others, key=lambda member: member.order), island)]


def _mendable(verdict: Verdict) -> bool:
    """Tampering is not a slip, and what could not be judged or timed is no fault of the code."""
    return verdict not in (Verdict.RIGHT, Verdict.REFUSED, Verdict.NOT_JUDGED, Verdict.TIME_NOT_CONFIRMED)

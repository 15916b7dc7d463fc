"""What an island wants next, before it becomes a brief."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.brief import BriefKind
from workbench.candidate import Candidate
from workbench.search.islands import Island
from workbench.search.mechanisms import Mechanisms
from workbench.search.members import Member, point_key
from workbench.search.selection import pick_parent, pick_repair
from workbench.search.tuning import next_point, points_left, wants_tuning

CROSSOVER = 0.2
"""How often a structural turn is a crossover, where two islands have elites."""
TUNE_AFTER = 3
"""Answers without a better best on its island before a tunable point gets a turn: while structure gains, it gains more."""
MISSES = 3
"""An island whose proposers had nothing this many times in a row gets no turns until something new happens to it."""


@dataclass(frozen=True)
class Idea:
    """One thing to ask for. `given` is its answer where no proposer is needed."""

    kind: BriefKind
    island: Island
    parents: tuple[Member, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expert: Mapping[str, Any] = field(default_factory=dict)
    given: Candidate | None = None
    directive: str = ""
    counts: bool = True
    """Whether it is one of the island's turns; what the person asks for is not."""


@dataclass(frozen=True)
class Choice:
    """What narrows an island's ideas: the person's pin, the ancestors to keep away from, and the cap on points.

    `again` is, in a replay, the tunable point that was asked then.
    """

    tune_cap: int
    mechanisms: Mechanisms = Mechanisms()
    again: Mapping[str, Any] | None = None
    proposing: bool = True
    pinned: Member | None = None
    family: frozenset[str] = frozenset()
    """The pinned candidate and its descendants."""
    avoid: frozenset[str] = frozenset()
    repair_first: bool = True
    """Whether repairs come before anything new."""

    def admits(self, member: Member) -> bool:
        return self.pinned is None or member.id in self.family


def island_idea(island: Island, islands: Sequence[Island], rng: random.Random, choice: Choice) -> Idea | None:
    """The island's turn. In this order: an expert's seed, a repair, a tunable point (every other turn, and only where structure has not
    gained for some), structure.

    None where it has to wait for what is in flight, or where its proposers have nothing more.
    """
    if island.seeds and choice.pinned is None:
        return Idea(kind="seed", island=island, expert={"expert": island.seeds[0]})
    tired = island.misses >= MISSES or not choice.proposing
    failing = [member for member in island.repairs.values() if choice.admits(member)]
    repair = Idea(kind="repair", island=island, parents=(pick_repair(failing),)) if failing and not tired else None
    if repair is not None and choice.repair_first:
        return repair
    point = _tune(island, rng, choice) if tired or island.stale >= TUNE_AFTER or choice.again is not None else None
    if point is not None and (tired or not island.tuned_last):
        return point
    structure = None if tired else _structure(island, islands, rng, choice)
    return structure or point or _tune(island, rng, choice) or repair


def _tune(island: Island, rng: random.Random, choice: Choice) -> Idea | None:
    if not choice.mechanisms.tuning:
        return None
    seed = rng.getrandbits(31)
    worth = [
        member for member in island.members.values()
        if choice.admits(member) and wants_tuning(member, choice.tune_cap, island.best_us)
    ]  # fmt: skip
    for member in sorted(worth, key=lambda member: member.order):
        point = choice.again or next_point(
            member.space, member.best_point, member.points, member.flying, seed, tuner=choice.mechanisms.tuner,
            left=points_left(member, choice.tune_cap),
        )  # fmt: skip
        if point is not None:
            return Idea(kind="tune", island=island, parents=(member,), parameters=point, given=member.candidate)
    return None


def _structure(island: Island, islands: Sequence[Island], rng: random.Random, choice: Choice) -> Idea | None:
    if choice.pinned is not None:
        return Idea(kind="step", island=island, parents=(choice.pinned,))
    elites = island.elites()
    if not elites:
        # Nothing works here yet, and no failing one has a repair left. While an answer is on its way it may change that.
        return None if island.open else Idea(kind="seed", island=island)
    kept = tuple(member for member in elites if member.id not in choice.avoid) or elites
    parent = pick_parent(kept, rng)
    partners = [] if not choice.mechanisms.crossover else [
        elite for other in islands if other is not island for elite in other.elites()[:1] if elite.id not in island.members
    ]  # fmt: skip
    if partners and rng.random() < CROSSOVER:
        return Idea(kind="crossover", island=island, parents=(parent, rng.choice(partners)))
    return Idea(kind="step", island=island, parents=(parent,))


def take(idea: Idea) -> None:
    """The idea is asked: whoever waited for it waits no longer."""
    island = idea.island
    island.open += 1
    if idea.counts:
        island.asked += 1
        island.tuned_last = idea.kind == "tune"
    if idea.kind == "seed" and idea.expert and island.seeds:
        island.seeds.popleft()
    elif idea.kind == "repair":
        island.repairs.pop(idea.parents[0].id, None)
    elif idea.kind == "tune":
        idea.parents[0].flying.add(point_key(idea.parameters))

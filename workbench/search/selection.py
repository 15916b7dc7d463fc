"""Who becomes a parent: mostly the fastest, sometimes one that is fast in another way."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from workbench.search.members import Member

ELITES = 4
NOVELTY = 0.5
"""How much an entirely different strategy is worth: as much as being 1.5 times as fast."""
EXPLOIT = 0.6
"""How often the first elite is the parent; the others share the rest."""


def distance(one: Member, other: Member) -> float:
    """How different two strategies are, 0 to 1: Jaccard distance of their descriptors."""
    union = one.descriptors | other.descriptors
    return 1 - len(one.descriptors & other.descriptors) / len(union) if union else 0.0


def pick_elites(members: Iterable[Member], count: int = ELITES, novelty: float = NOVELTY) -> tuple[Member, ...]:
    """The right ones that deserve children, the fastest first.

    Each further one is the best by speed relative to the fastest, raised by up to `novelty` for its distance to the nearest
    that is already chosen: a twin of an elite has to be faster than a stranger to get in.
    """
    rest = sorted((member for member in members if member.right and member.time_us is not None), key=lambda member: member.order)
    if not rest:
        return ()
    chosen = [rest.pop(0)]
    fastest = chosen[0].time_us or 0.0

    def worth(member: Member) -> tuple[float, int]:
        speed = fastest / member.time_us if member.time_us else 0.0
        return speed * (1 + novelty * min(distance(member, elite) for elite in chosen)), -member.number

    while rest and len(chosen) < count:
        chosen.append(max(rest, key=worth))
        rest.remove(chosen[-1])
    return tuple(chosen)


def pick_parent(elites: Sequence[Member], rng: random.Random, exploit: float = EXPLOIT) -> Member:
    """One of the elites: the first with probability `exploit`, else one of the others, earlier ones more often."""
    if len(elites) == 1 or rng.random() < exploit:
        return elites[0]
    others = elites[1:]
    return rng.choices(others, weights=[1 / (place + 1) for place in range(len(others))])[0]


def pick_repair(failing: Iterable[Member]) -> Member:
    """The near miss: the failing one that came farthest."""
    return min(failing, key=lambda member: member.order)

"""Which point of a tunable space comes next: neighbours of the best one, then any other."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from workbench.search.members import Member, point_key

LISTED = 4096
"""A space of more points than this is sampled instead of listed."""

Space = Mapping[str, Sequence[Any]]


def next_point(space: Space, best: Mapping[str, Any], tried: Collection[str], rng: random.Random) -> dict[str, Any] | None:
    """A point that is not in `tried`; None when there is none left.

    A step of one parameter away from the best point so far is preferred, in random order; after those any other point is as good.
    Values are neighbours in sorted order where they can be sorted, since the first listed one is only the default.
    """
    near = [point for point in neighbours(space, best) if point_key(point) not in tried]
    if near:
        return rng.choice(near)
    size = 1
    for values in space.values():
        size *= len(values)
    if size > LISTED:
        # So few of them are tried that a random point is a new one almost surely.
        for _ in range(64):
            point = {name: rng.choice(list(values)) for name, values in space.items()}
            if point_key(point) not in tried:
                return point
        return None
    names = list(space)
    points = (dict(zip(names, choice, strict=True)) for choice in itertools.product(*space.values()))
    rest = [point for point in points if point_key(point) not in tried]
    return rng.choice(rest) if rest else None


def neighbours(space: Space, point: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The points one value away from `point` in one parameter."""
    for name, listed in space.items():
        values = _sorted(listed)
        if point.get(name) not in values:
            continue
        place = values.index(point[name])
        for other in (place - 1, place + 1):
            if 0 <= other < len(values):
                yield {**point, name: values[other]}


def wants_tuning(member: Member, cap: int, island_best: float | None, slack: float = 1.25) -> bool:
    """Whether further points of a member are worth an evaluation: it is right, near its island's best, and below its cap."""
    if not member.right or member.time_us is None or not any(len(values) > 1 for values in member.space.values()):
        return False
    if island_best is not None and member.time_us > slack * island_best:
        return False
    return len(member.points) - 1 + len(member.flying) < cap


def _sorted(values: Sequence[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)

"""Which point of a tunable space comes next.

Every tuner is a function of the points known so far and of a seed, and keeps no state: a run that is taken up again goes on as it would
have gone on.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from workbench.errors import MisuseError
from workbench.search.mechanisms import Tuner
from workbench.search.members import Member, point_key

LISTED = 4096
"""A space of more points than this is sampled instead of listed."""
STARTUP = 2
"""Points beside the default that the estimator wants to know before it estimates."""
DRAWS = 12
"""How often the estimator is asked again when it names a point that was tried."""

Space = Mapping[str, Sequence[Any]]
Known = Mapping[str, float | None]


def next_point(
    space: Space, best: Mapping[str, Any], known: Known, flying: Collection[str], seed: int, *, tuner: Tuner = "near", left: int = LISTED
) -> dict[str, Any] | None:  # fmt: skip
    """A point that was not tried and is not on its way; None when there is none left.

    Where all remaining points fit into `left` evaluations they are simply listed, the nearest to the best first.

    Args:
        space: values by name; the first is the default.
        best: the best point so far.
        known: by `point_key`: the time in µs of each point tried, None where it does not pass.
        flying: the keys of points on their way.
        tuner: see `Mechanisms.tuner`.
        left: how many more points may be tried.
    """
    tried = set(known) | set(flying)
    rng = random.Random(seed)
    if _size(space) <= LISTED:
        rest = [point for point in _points(space) if point_key(point) not in tried]
        if not rest:
            return None
        if len(rest) <= left:
            steps = _steps_from(space, best)
            return min(rest, key=steps)
    if tuner == "tpe":
        point = _estimated(space, known, flying, seed)
        if point is not None and point_key(point) not in tried:
            return point
    if tuner in ("tpe", "near"):
        near = [point for point in neighbours(space, best) if point_key(point) not in tried]
        if near:
            return rng.choice(near)
    if _size(space) <= LISTED:
        return rng.choice(rest)
    # So few of them are tried that a random point is a new one almost surely.
    for _ in range(64):
        point = {name: rng.choice(list(values)) for name, values in space.items()}
        if point_key(point) not in tried:
            return point
    return None


def neighbours(space: Space, point: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The points one value away from `point` in one parameter. Values are in sorted order, where they can be sorted."""
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
    return points_left(member, cap) > 0


def points_left(member: Member, cap: int) -> int:
    """How many further points of a member the sub-budget allows; its first one is not of it."""
    return cap - (len(member.points) - 1 + len(member.flying))


def _estimated(space: Space, known: Known, flying: Collection[str], seed: int) -> dict[str, Any] | None:
    """What Optuna's tree-structured Parzen estimator would try (Bergstra et al., NeurIPS 2011), given what is known.

    A point that does not pass is told as pruned: worse than everything that passes, and worth keeping away from. One that is on its way
    is told as bad as the worst known, so that two in flight are not neighbours.
    """
    optuna = _optuna()
    values = {name: _sorted(listed) for name, listed in space.items()}
    scales: dict[str, Any] = {name: _scale(optuna, listed) for name, listed in values.items()}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP))
    worst = max((time for time in known.values() if time is not None), default=0.0)
    for key, time in [*known.items(), *((key, worst) for key in sorted(flying))]:
        point = json.loads(key)
        state = optuna.trial.TrialState.PRUNED if time is None else optuna.trial.TrialState.COMPLETE
        params = {name: _place(values[name], value) for name, value in point.items()}
        study.add_trial(optuna.create_trial(params=params, distributions=scales, value=time, state=state))
    for _ in range(DRAWS):
        trial = study.ask(scales)
        point = {name: values[name][int(place)] for name, place in trial.params.items()}
        if point_key(point) not in known and point_key(point) not in flying:
            return point
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return None


def _optuna() -> Any:
    """Imported when the first point is estimated: it takes half a second."""
    try:
        import optuna
    except ImportError:
        raise MisuseError("the tuner of this run is Optuna, which is not here: pip install optuna, or start a new run") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _scale(optuna: Any, values: Sequence[Any]) -> Any:
    """Places in order where values have an order, so that neighbours are alike; else names without one."""
    places = range(len(values))
    if _ordered(values):
        return optuna.distributions.IntDistribution(0, len(values) - 1)
    return optuna.distributions.CategoricalDistribution(tuple(places))


def _place(values: Sequence[Any], value: Any) -> int:
    # `True == 1`, and JSON makes lists of tuples: places are found by what would be written.
    wanted = point_key({"": value})
    return next((place for place, one in enumerate(values) if point_key({"": one}) == wanted), 0)


def _points(space: Space) -> Iterator[dict[str, Any]]:
    names = list(space)
    for choice in itertools.product(*space.values()):
        yield dict(zip(names, choice, strict=True))


def _size(space: Space) -> int:
    size = 1
    for values in space.values():
        size *= len(values)
    return size


def _steps_from(space: Space, best: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], int]:
    """Says how many steps in sorted order lie between the best point and another."""
    places = {name: {point_key({"": value}): place for place, value in enumerate(_sorted(listed))} for name, listed in space.items()}
    home = {name: places[name].get(point_key({"": best[name]}), 0) for name in space}
    keys = {name: {id(value): places[name][point_key({"": value})] for value in listed} for name, listed in space.items()}
    # Points are made of the space's own values, so that their identity finds them.
    return lambda point: sum(abs(keys[name][id(point[name])] - home[name]) for name in space)


def _ordered(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _sorted(values: Sequence[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)

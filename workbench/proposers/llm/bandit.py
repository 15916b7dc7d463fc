"""Which model for which kind of work: a bandit that learns from what came of each model's answers and from what they cost."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

THRIFT: Mapping[str, float] = {"seed": 0.3, "step": 0.15, "crossover": 0.15, "repair": 0.6}
"""How much price counts for each kind of work, 0 to 1. For structure the better model is worth its tokens; a repair is routine."""


@dataclass(frozen=True)
class Arm:
    """What is known of one model at one kind of work.

    Attributes:
        reward: sum of rewards, each 0 to 1.
        cost: mean USD of a call; None where the price is not known or nothing was called yet.
    """

    model: str
    pulls: int = 0
    reward: float = 0.0
    cost: float | None = None

    @property
    def mean(self) -> float:
        return self.reward / self.pulls if self.pulls else 0.0


@dataclass(frozen=True)
class Choice:
    """A model chosen for a kind of work, with the score that each had and the reason in one line."""

    kind: str
    model: str
    scores: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


class Bandit:
    """Thompson sampling over models, one set of arms for each kind of work, with the sampled success divided by relative cost.

    A model's success is drawn from a Beta distribution of its rewards (W. R. Thompson, Biometrika 25, 1933). The draw is divided by
    ``(cost / cheapest cost) ** thrift``. Costs that are not known yet are taken from `expected`; if any of them is unknown, cost does not
    count. The same seed, questions and lessons give the same choices.

    >>> bandit = Bandit(("small", "large"), seed=1, expected={"small": 0.001, "large": 0.02})
    >>> for _ in range(30):
    ...     bandit.learn("step", "large", reward=0.9, cost=0.02)
    ...     bandit.learn("step", "small", reward=0.1, cost=0.001)
    >>> bandit.choose("step").model
    'large'

    Args:
        models: names, in the order in which ties are broken.
        learning: whether choices follow what was learnt; if not, the models take turns.
        expected: USD of a typical call by model, where the price is known.
    """

    def __init__(
        self, models: Sequence[str], *, seed: int = 0, expected: Mapping[str, float | None] | None = None, learning: bool = True
    ) -> None:
        if not models:
            raise ValueError("a bandit needs at least one model")
        self._models = tuple(dict.fromkeys(models))
        self._seed = seed
        self.learning = learning
        self._expected = dict(expected or {})
        self._arms: dict[tuple[str, str], Arm] = {}
        self._turns: dict[str, int] = {}

    def arms(self, kind: str) -> tuple[Arm, ...]:
        """What is known of each model at that kind of work."""
        return tuple(self._arms.get((kind, model), Arm(model)) for model in self._models)

    def choose(self, kind: str, among: Sequence[str] | None = None) -> Choice:
        """The model for the next call of that kind, among those given."""
        arms = [arm for arm in self.arms(kind) if among is None or arm.model in among]
        if not arms:
            raise ValueError("no model to choose from")
        turn = self._turns.get(kind, 0)
        self._turns[kind] = turn + 1
        if len(arms) == 1:
            return Choice(kind, arms[0].model, {arms[0].model: 1.0}, "the only model")
        if not self.learning:
            return Choice(kind, arms[turn % len(arms)].model, {}, "the models take turns")
        costs = [self._cost(arm) for arm in arms]
        known = [cost for cost in costs if cost is not None]
        cheapest = min(known) if len(known) == len(costs) and min(known) > 0 else None
        scores = {}
        for arm, cost in zip(arms, costs, strict=True):
            chance = random.Random(f"{self._seed}:{kind}:{turn}:{arm.model}")
            drawn = chance.betavariate(1 + arm.reward, 1 + max(0.0, arm.pulls - arm.reward))
            dear = 1.0 if cheapest is None or cost is None else (cost / cheapest) ** THRIFT.get(kind, 0.3)
            scores[arm.model] = drawn / dear
        best = max(arms, key=lambda arm: scores[arm.model])
        against = "" if cheapest is not None else ", prices not compared"
        why = f"{best.mean:.2f} mean reward in {best.pulls} answers" if best.pulls else "not tried yet"
        return Choice(kind, best.model, scores, f"{why}{against}")

    def learn(self, kind: str, model: str, reward: float, cost: float | None = None) -> None:
        """One answer of `model` came to `reward`, 0 (useless) to 1 (all that could be hoped), and cost so many USD."""
        arm = self._arms.get((kind, model), Arm(model))
        pulls = arm.pulls + 1
        mean = arm.cost
        if cost is not None:
            mean = cost if arm.cost is None else arm.cost + (cost - arm.cost) / pulls
        self._arms[kind, model] = Arm(model, pulls, arm.reward + min(1.0, max(0.0, reward)), mean)

    def _cost(self, arm: Arm) -> float | None:
        return arm.cost if arm.cost is not None else self._expected.get(arm.model)

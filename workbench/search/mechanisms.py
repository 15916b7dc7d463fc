"""Which parts of the search are on: one frozen record of switches, so that each can be measured by turning it off."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from workbench.brief import Budget
from workbench.errors import MisuseError

Tuner = Literal["auto", "tpe", "near", "random"]
ISLANDS_FROM = 200
"""Evaluations from which islands are on. In 40 and in 100 they cost more than they bring; beyond, nothing was measured."""
_ONCE_ON = ("islands", "cards", "migration", "diversity")
"""What all runs had on before it could be left open."""
TUNERS: tuple[Tuner, ...] = ("auto", "tpe", "near", "random")


@dataclass(frozen=True)
class Mechanisms:
    """The switches. The defaults are what pays in ``python -m workbench bench search``, see ``workbench/bench/FIGURES.md``.

    Attributes:
        seeds: experts that fit the op write the first candidates of each island.
        islands: one population a role; off: one population on which the roles take turns. None: by the budget, see `ISLANDS_FROM`.
        experience: results teach the library of cards.
        cards: and briefs carry the cards that fit them.
        repair: failing candidates get a bounded chain of repairs before anything new is tried.
        odds: but only while repairs come out right at least as often as fresh candidates do.
        diagnosis: the directive follows the diagnosis of the parent; off: the island's aim, or the judge's bare reason for a repair.
        crossover: some steps combine elites of two islands.
        migration: an island that stagnates takes in an elite of another.
        tuning: the points of ``TUNE`` are searched without a proposer.
        diversity: an elite is worth more when its strategy is unlike that of the others.
        plateau: roles and ancestors change when nothing gets faster, and in the end the run stops; off: it goes on to its caps.
        floor: the run stops at 95 % of the roofline.
        bandit: models are chosen by what came of their answers and by price; off: they take turns.
        bans: a candidate that plainly uses what the person banned is refused before it is judged; off: bans are words to proposers.
        tuner: who picks points: ``tpe`` (Optuna's tree-structured Parzen estimator), ``near`` (neighbours of the best, drawn by seed),
            ``random`` (any point, drawn by seed), or ``auto`` (see `resolved`).
    """

    seeds: bool = True
    islands: bool | None = None
    experience: bool = True
    cards: bool = False
    repair: bool = True
    odds: bool = True
    diagnosis: bool = True
    crossover: bool = True
    migration: bool = False
    tuning: bool = True
    diversity: bool = False
    plateau: bool = True
    floor: bool = True
    bandit: bool = True
    bans: bool = True
    tuner: Tuner = "auto"

    def without(self, *names: str) -> Mechanisms:
        """The same with those turned off.

        >>> Mechanisms().without("islands", "crossover").islands
        False

        Raises:
            MisuseError: there is no such mechanism.
        """
        return self._turned(names, False)

    def having(self, *names: str) -> Mechanisms:
        """The same with those turned on.

        Raises:
            MisuseError: there is no such mechanism.
        """
        return self._turned(names, True)

    def _turned(self, names: Iterable[str], on: bool) -> Mechanisms:
        for name in names:
            if name not in SWITCHES:
                raise MisuseError(f"there is no mechanism {name!r}: there is {', '.join(SWITCHES)}")
        changes: dict[str, Any] = dict.fromkeys(names, on)
        return replace(self, **changes)

    def resolved(self, budget: Budget | None = None) -> Mechanisms:
        """With what is left open settled: islands by the budget, and a tuner that this machine has in place of ``auto``. A run keeps
        both, so that it goes on alike elsewhere, and with another budget.
        """
        islands, tuner = self.islands, self.tuner
        if islands is None:
            cap = budget.evaluations if budget is not None else None
            islands = cap is None or cap >= ISLANDS_FROM
        if tuner == "auto":
            tuner = "tpe" if importlib.util.find_spec("optuna") is not None else "near"
        return replace(self, islands=islands, tuner=tuner)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Mechanisms:
        """From a run's record; what it does not name is as it is by default, and what this version does not know is left out."""
        known = {one.name for one in fields(cls)}
        stored = {**dict.fromkeys(_ONCE_ON, True), **stored}
        return cls(**{name: value for name, value in stored.items() if name in known})


DEFAULT = Mechanisms()

SWITCHES: tuple[str, ...] = tuple(one.name for one in fields(Mechanisms) if one.name != "tuner")
"""The names of the mechanisms that can be turned off."""


def all_off(keep: Iterable[str] = ()) -> Mechanisms:
    """Nothing but asking for one candidate after the other; `keep` names what stays on."""
    return Mechanisms().without(*(name for name in SWITCHES if name not in set(keep)))

"""A card: one piece of experience, when it applies, and how far it is to be trusted."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from workbench import brief
from workbench.knowledge.experience.features import Features

PRIOR_WEIGHT = 4.0
"""How many trials a card's first confidence counts as."""


UNSAID = "this change"
"""What a card advises whose author did not say what he did."""


@dataclass(frozen=True)
class Trigger:
    """When a card applies. An empty field asks for nothing; of a full one, one entry has to be there.

    Attributes:
        kinds, axes, shapes, dtypes: of the op, see `Features`.
        targets: for advice that only some hardware can use, such as ``("cuda:90",)``.
        diagnoses: kinds of `workbench.candidate.Diagnosis`.
        roles: names of islands.
    """

    kinds: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    diagnoses: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def fits(self, op: Features, target: str, diagnosis: str, role: str) -> int | None:
        """How many full fields are met; None where one is not. An unknown diagnosis or role is no reason against a card."""
        met = 0
        for wanted, given in (
            (self.kinds, op.kinds),
            (self.axes, op.axes),
            (self.shapes, op.shapes),
            (self.dtypes, op.dtypes),
            (self.targets, (target,)),
            (self.diagnoses, (diagnosis,) if diagnosis else None),
            (self.roles, (role,) if role else None),
        ):
            if not wanted or given is None:
                continue
            if not set(wanted) & set(given):
                return None
            met += 1
        return met

    def words(self) -> str:
        """Its entries, for people and for the text index."""
        return ", ".join(_unique([*self.kinds, *self.axes, *self.shapes, *self.dtypes, *self.targets, *self.diagnoses, *self.roles]))


@dataclass(frozen=True)
class Card:
    """One piece of experience. Failures are cards too: their effect is negative.

    Attributes:
        when: the trigger in words; the entries of `trigger` where empty.
        advice: what to do, or what was done.
        code: a snippet that compiles, or the diff that was made.
        effect: parent's time over the child's, minus 1, as a mean of `trials` measurements: 0.5 is one and a half times as fast, -0.2 is
            slower, -1 did not work at all. None: never measured.
        modelled: the effect comes from modelled times.
        hits: how many of the trials helped; a trial that changed nothing is half a hit.
        prior: confidence before any trial.
        source: ``shipped``, or the candidate that it was learnt from.
        measured_on: GPU or target, and toolchain, of the last measurement.
    """

    id: str
    trigger: Trigger
    advice: str
    when: str = ""
    code: str = ""
    effect: float | None = None
    modelled: bool = False
    trials: int = 0
    hits: float = 0.0
    prior: float = 0.5
    source: str = "shipped"
    measured_on: str = ""

    @property
    def confidence(self) -> float:
        """0 to 1: the prior and the trials, weighed together."""
        return (PRIOR_WEIGHT * self.prior + self.hits) / (PRIOR_WEIGHT + self.trials)

    @functools.cached_property
    def text(self) -> str:
        """What it is found by."""
        return f"{self.when} {self.advice} {self.trigger.words()}"

    @property
    def is_negative(self) -> bool:
        """It says what not to do."""
        return self.effect is not None and self.effect < 0

    def tried(self, effect: float) -> Card:
        """The card after a candidate that cites it was measured.

        A warning keeps the effect that made it one: whoever cites it has not done what it warns of.
        """
        hit = 1.0 if effect > 0.02 else 0.5 if effect > -0.02 else 0.0
        mean = self.effect
        if not self.is_negative:
            mean = effect if self.effect is None else self.effect + (effect - self.effect) / (self.trials + 1)
        return replace(self, effect=mean, trials=self.trials + 1, hits=self.hits + hit)

    def measured_as(self, other: Card) -> Card:
        """This card with what `other`, an older wording of it, was measured at."""
        return replace(
            self, effect=other.effect, modelled=other.modelled, trials=other.trials, hits=other.hits, measured_on=other.measured_on
        )

    def shown(self) -> brief.Card:
        """As a brief carries it: on the first line what to do, on the others the code. Of a warning the words do."""
        needed = not self.is_negative or UNSAID in self.advice
        advice = f"{self.advice}\n{self.code}" if self.code and needed else self.advice
        when = self.when or self.trigger.words() or "always"
        return brief.Card(self.id, when, advice, self.effect_in_words(), round(self.confidence, 3))

    def effect_in_words(self) -> str:
        """The effect for people; empty where nothing was measured."""
        if self.effect is None:
            return ""
        how = "modelled" if self.modelled else "measured"
        times = f"{self.trials} time{'s' if self.trials != 1 else ''}"
        if self.effect <= -0.99:
            return f"did not work, {how} {times}"
        return f"{1 + self.effect:.2f}× as fast, {how} {times}"


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(word for word in words if word))


@dataclass(frozen=True)
class Shelf:
    """The file form of a library."""

    cards: tuple[Card, ...] = field(default_factory=tuple)
    version: int = 1

"""What a run learns beyond its search: experience for later runs, and which model is good at what. Both in ask order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from workbench.brief import Brief, Parent, Proposal
from workbench.candidate import Candidate, Evaluation
from workbench.errors import StoreError
from workbench.events import Asked, Evaluated, Event, Noted, Proposed, Stamped
from workbench.knowledge.experience import Library

CARDS = 4
"""How many cards a brief carries."""


class AnyExperience(Protocol):
    """What a run needs of an experience; `store.experience.ExperienceStore` has it, and `Unkept`."""

    library: Library
    kept: bool

    def learn(self, task: Any, parents: tuple[Parent, ...], child: Candidate, evaluation: Evaluation) -> tuple[str, ...]: ...


class Unkept:
    """A library that is gone with the process: shipped cards, and what this run adds."""

    kept = False

    def __init__(self, library: Library | None = None) -> None:
        self.library = library if library is not None else Library.shipped()

    def learn(self, task: Any, parents: tuple[Parent, ...], child: Candidate, evaluation: Evaluation) -> tuple[str, ...]:
        return self.library.learn(task, parents, child, evaluation)


class Lessons:
    """Furnishes briefs with cards, and passes results on: in ask order, so that equal answers teach the same however long each took."""

    def __init__(
        self, experience: AnyExperience, proposers: Sequence[Any], tell: Callable[[Event], None], on: bool = True, cards: bool = True,
    ) -> None:  # fmt: skip
        """Use one a run.

        Args:
            tell: puts an event on the record: what was learnt, or why it can't be kept.
            on: whether cards are learnt; the models' bandit hears of results in any case.
            cards: whether briefs get those that fit, where they are learnt.
        """
        self._experience, self._tell, self._on, self._cards = experience, tell, on, on and cards
        self._observers = [one.observe for one in proposers if hasattr(one, "observe")]
        self._waiting: dict[str, tuple[Brief, Proposal, Evaluation | None] | None] = {}
        self._warned = self._replaying = False

    def furnish(self, brief: Brief) -> Brief:
        """The brief with the cards that fit it; its turn to be learnt from comes after those asked before."""
        self._waiting[brief.id] = None
        if brief.kind in ("tune", "person") or not self._cards:
            return brief
        diagnosis = brief.parents[0].diagnosis if brief.parents else None
        try:
            return replace(brief, cards=self._experience.library.retrieve(brief.task, diagnosis, brief.island, k=CARDS))
        except Exception as error:  # cards are a help, not a need
            self._trouble(error)
            return brief

    def told(self, brief: Brief, proposal: Proposal, evaluation: Evaluation | None = None) -> None:
        """What came of a brief; without an evaluation there was no candidate."""
        self._waiting[brief.id] = (brief, proposal, evaluation)
        while self._waiting and (first := next(iter(self._waiting.values()))) is not None:
            del self._waiting[first[0].id]
            self._learn(*first)

    def replay(self, events: Sequence[Stamped]) -> dict[str, Brief]:
        """Takes in what earlier events say. Experience that is kept has learnt from them already.

        Returns:
            The stored briefs that wait for their answer or for their verdict.
        """
        briefs: dict[str, Brief] = {}
        proposals: dict[str, Proposal] = {}
        self._replaying = True
        for stamped in events:
            match stamped.event:
                case Asked(brief=brief):
                    briefs[brief.id] = brief
                    self._waiting[brief.id] = None
                case Proposed(proposal=proposal):
                    proposals[proposal.brief] = proposal
                    if proposal.candidate is None:
                        self.told(briefs.pop(proposal.brief), proposal)
                case Evaluated(brief=name, evaluation=evaluation):
                    self.told(briefs.pop(name), proposals.get(name) or Proposal(name, None), evaluation)
        self._replaying = False
        return briefs

    def _learn(self, brief: Brief, proposal: Proposal, evaluation: Evaluation | None) -> None:
        if evaluation is None or proposal.candidate is None or brief.kind == "tune":
            return
        self._observe(brief, proposal, evaluation)
        if not self._on or (self._replaying and self._experience.kept):
            return
        try:
            changed = self._experience.learn(brief.task, brief.parents, proposal.candidate, evaluation)
        except StoreError as error:
            self._trouble(error)
            return
        for name in changed if not self._replaying else ():
            self._tell(Noted(self._lesson(name, proposal.candidate), level="lesson"))

    def _lesson(self, name: str, child: Candidate) -> str:
        """What became of a card, in one line."""
        card = self._experience.library.card(name)
        if card is None:
            return f"experience: {name} was dropped"
        how = "cited by" if name in child.cites else "learnt from" if card.trials == 1 else "seen again in"
        return f"experience: {name}, {how} {child.id}: {card.effect_in_words()}, confidence {card.confidence:.2f}"

    def _observe(self, brief: Brief, proposal: Proposal, evaluation: Evaluation) -> None:
        for observe in self._observers:
            observe(brief, proposal, evaluation)

    def _trouble(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            self._tell(Noted(f"the experience of this run is not kept: {error}", level="warning"))

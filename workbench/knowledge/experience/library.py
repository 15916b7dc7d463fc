"""The experience library: cards in memory, found by op and diagnosis, reinforced by what their use brings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from workbench import brief
from workbench.candidate import Candidate, Diagnosis, Evaluation
from workbench.errors import MisuseError
from workbench.knowledge.experience.card import UNSAID, Card, Shelf, Trigger
from workbench.knowledge.experience.effect import effect_of
from workbench.knowledge.experience.features import features
from workbench.knowledge.experience.index import TextIndex
from workbench.knowledge.experience.seeds import seed_cards
from workbench.records import digest, dumps, loads
from workbench.task import Task

WORTH_KEEPING = 0.05
"""A change in time below this share is no experience."""

_FAILURES = frozenset({"build", "launch", "mismatch", "precision", "timeout", "refused", "unknown"})

DIFF_LINES = 40
"""A longer diff is no advice; its plan alone is kept."""


class Library:
    """Cards by id. Not thread-safe: one thread owns it, as it owns the search.

    >>> library = Library.shipped()
    >>> [card.id for card in library.retrieve(task, diagnosis, "memory traffic and layout")]   # doctest: +SKIP
    ['row-in-registers', 'rows-per-program', 'evict-first']
    """

    def __init__(self, cards: Iterable[Card] = ()) -> None:
        self._cards = {card.id: card for card in cards}
        self._index = TextIndex()

    @classmethod
    def shipped(cls) -> Library:
        """The cards that come with the workbench."""
        return cls(seed_cards())

    @property
    def cards(self) -> tuple[Card, ...]:
        return tuple(self._cards.values())

    def __len__(self) -> int:
        return len(self._cards)

    def __contains__(self, card_id: object) -> bool:
        return card_id in self._cards

    def card(self, card_id: str) -> Card | None:
        return self._cards.get(card_id)

    def retrieve(
        self, task: Task, diagnosis: Diagnosis | None = None, role: brief.Role | str | None = None, k: int = 3
    ) -> tuple[brief.Card, ...]:
        """The `k` cards that fit best, as a brief carries them: those whose trigger the op, target and diagnosis meet, by the BM25 of
        their text, by how much of the trigger is met, and by confidence. At most a third of them are warnings.
        """
        op, kind = features(task), diagnosis.kind if diagnosis else ""
        name, aim = (role.name, role.aim) if isinstance(role, brief.Role) else (role or "", "")
        fitting = {card.id: met for card in self.cards if (met := card.trigger.fits(op, task.target, kind, name)) is not None}
        told = (diagnosis.summary, diagnosis.directive, *diagnosis.evidence) if diagnosis else ()
        # What mends a failure depends on the failure; what makes an op faster depends on the op.
        words = told if kind in _FAILURES else (*op.kinds, *op.ops, *op.axes, *op.shapes, *op.dtypes, *told, name, aim)
        query = f"{kind} {' '.join(words)}"
        # Words are weighed over all cards, not only over the fitting ones, among which what they share would count for nothing.
        text = self._index.relevance({card.id: card.text for card in self.cards}, query)

        def score(card_id: str) -> float:
            card = self._cards[card_id]
            urgent = 0.3 if kind and kind in card.trigger.diagnoses else 0.0
            return 0.6 * text[card_id] + card.confidence + 0.1 * fitting[card_id] + urgent

        best = sorted(fitting, key=lambda card_id: (-score(card_id), card_id))
        chosen: list[Card] = []
        for card_id in best:
            card = self._cards[card_id]
            warnings = sum(other.is_negative for other in chosen)
            if len(chosen) < k and not (card.is_negative and warnings >= max(1, k // 3)):
                chosen.append(card)
        return tuple(card.shown() for card in chosen)

    def reinforce(self, card_id: str, effect: float) -> None:
        """A candidate that cites the card came to `effect`, see `effect_of`. An id that is not here, such as an expert's, passes."""
        card = self._cards.get(card_id)
        if card is not None:
            self._cards[card_id] = card.tried(effect)

    def learn(self, task: Task, parents: tuple[brief.Parent, ...], child: Candidate, evaluation: Evaluation) -> tuple[str, ...]:
        """Takes in one result: the cards that `child` cites are reinforced or weakened, and what it changed may become a card.

        Returns:
            ids of the cards that changed or came.
        """
        changed: list[str] = []
        effect = effect_of(parents[0].evaluation, evaluation) if parents else None
        for card_id in child.cites if effect is not None else ():
            if card_id in self and effect is not None:
                self.reinforce(card_id, effect)
                changed.append(card_id)
        if len(parents) == 1:
            made = self.add(task, parents[0], child, evaluation)
            changed += [made.id] if made is not None and made.id not in changed else []
        return tuple(changed)

    def add(self, task: Task, parent: brief.Parent, child: Candidate, evaluation: Evaluation) -> Card | None:
        """The card that the step from `parent` to `child` makes, or reinforces if it is there; None where it teaches nothing.

        A step that fails or is slower makes a warning.
        """
        effect = effect_of(parent.evaluation, evaluation)
        if effect is None or abs(effect) < WORTH_KEEPING:
            return None
        lines = _changed_lines(parent.candidate.source, child.source)
        if not lines or (len(lines) > DIFF_LINES and not child.plan):
            return None
        op = features(task)
        diagnoses = (parent.diagnosis.kind,) if parent.diagnosis is not None else ()
        trigger = Trigger(kinds=op.kinds, axes=op.axes, diagnoses=diagnoses)
        code = "\n".join(lines) if len(lines) <= DIFF_LINES else ""
        card_id = "x-" + digest([trigger, lines], 8)
        if card_id in self._cards:
            self.reinforce(card_id, effect)
            return self._cards[card_id]
        advice = child.plan or UNSAID
        if effect < 0:
            advice = f"did not help: {advice}" + (f" ({evaluation.reason})" if evaluation.reason and not evaluation.verdict.passes else "")
        card = Card(
            id=card_id,
            trigger=trigger,
            advice=" ".join(advice.split())[:400],
            when=f"{', '.join(op.kinds)} over {', '.join(op.dtypes)}" + (f", {diagnoses[0]}" if diagnoses else ""),
            code=code,
            effect=effect,
            modelled=evaluation.timing is not None and evaluation.timing.modelled,
            trials=1,
            hits=1.0,  # what was measured is a trial of what the card says, be it a warning
            source=f"{child.proposer or 'candidate'} {child.id}",
            measured_on=_where(task, evaluation),
        )
        self._cards[card_id] = card
        return card

    def put(self, cards: Iterable[Card]) -> None:
        """Takes over cards as they are; of one id, the given one stays."""
        self._cards.update((card.id, card) for card in cards)

    def merge(self, other: Iterable[Card]) -> int:
        """Takes over cards; of two with one id, that with more trials stays. Returns how many came or changed."""
        count = 0
        for card in other:
            mine = self._cards.get(card.id)
            if mine is None or card.trials > mine.trials:
                self._cards[card.id] = card
                count += 1
        return count

    def dumps(self) -> str:
        """The library as JSON text."""
        return dumps(Shelf(self.cards))

    @classmethod
    def loads(cls, text: str) -> Library:
        """The library whose text `dumps` made.

        Raises:
            MisuseError: it is no such text.
        """
        try:
            shelf = loads(Shelf, text)
            if not shelf.cards or not all(isinstance(card, Card) and isinstance(card.trigger, Trigger) for card in shelf.cards):
                raise ValueError("no cards in it")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise MisuseError(f"this is no experience file ({error}): give one that the workbench exported") from None
        return cls(shelf.cards)

    def export_file(self, path: str | Path) -> None:
        """Writes all cards into one JSON file."""
        Path(path).write_text(self.dumps() + "\n", encoding="utf-8")

    def import_file(self, path: str | Path) -> int:
        """Merges the cards of an exported file; returns how many came or changed.

        Raises:
            MisuseError: the file can't be read or is none of ours.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MisuseError(f"the experience file {path} can't be read: {error}") from None
        return self.merge(Library.loads(text).cards)

    def forget(self, limit: int) -> int:
        """Drops learnt cards of least confidence until at most `limit` are left; shipped ones stay. Returns how many went."""
        learnt = sorted((card for card in self.cards if card.source != "shipped"), key=lambda card: (card.confidence, card.trials, card.id))
        gone = learnt[: max(0, len(self._cards) - limit)]
        for card in gone:
            del self._cards[card.id]
        return len(gone)


def _changed_lines(old: str, new: str) -> list[str]:
    """The diff without its file header and places, with one line of context."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]
    return ["…" if line.startswith("@@") else line for line in lines]


def _where(task: Task, evaluation: Evaluation) -> str:
    environment = evaluation.environment
    tools = [f"triton {environment.triton}" if environment.triton else "", f"torch {environment.torch}" if environment.torch else ""]
    return ", ".join(part for part in (environment.gpu or f"modelled for {task.target}", *tools) if part)

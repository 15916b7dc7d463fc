"""The user's experience, kept in a database of its own: all runs on this machine learn from it and add to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select, update

from workbench import brief
from workbench.candidate import Candidate, Evaluation
from workbench.knowledge.experience import Card, Library
from workbench.records import dumps, loads
from workbench.store import schema
from workbench.store.engine import open_engine
from workbench.store.places import make_folder
from workbench.store.troubles import explained
from workbench.task import Task

LIMIT = 2000
"""More cards than this are too many: those of least confidence go."""


class ExperienceStore:
    """Cards on disk. Each lesson is learnt from the newest state and saved in one transaction, so that runs side by side add up.

    Attributes:
        library: the cards as of the last `learn`, shipped ones included; what briefs are furnished from.
    """

    kept = True

    def __init__(self, place: str | Path | None = None, *, timeout: float = 10.0) -> None:
        """Opens or makes the database, ``experience.db`` in the user's data folder unless `place` or WORKBENCH_EXPERIENCE says otherwise.

        Raises:
            StoreError: it can't be opened or made.
        """
        file = make_folder(Path(place if place is not None else default_place()).expanduser())
        self.place = str(file)
        self.library = Library.shipped()
        self._shipped = {card.id: card for card in self.library.cards}
        self._seen = 0
        with explained(self.place):
            self._engine = open_engine(file, timeout)
        with self._transaction(writes=True) as connection:
            schema.cards.create(connection, checkfirst=True)
            self._refresh(connection)

    def learn(self, task: Task, parents: tuple[brief.Parent, ...], child: Candidate, evaluation: Evaluation) -> tuple[str, ...]:
        """`Library.learn`, kept; returns the ids of the cards that changed or came."""
        with self._transaction(writes=True) as connection:
            self._refresh(connection)
            changed = self.library.learn(task, parents, child, evaluation)
            self._save(connection, changed)
            before = {card.id for card in self.library.cards}
            if self.library.forget(LIMIT):
                gone = before - {card.id for card in self.library.cards}
                connection.execute(delete(schema.cards).where(schema.cards.c.id.in_(gone)))
        return changed

    def merge(self, cards: Iterable[Card]) -> int:
        """Takes cards over, all or none; of two with one id that with more trials stays. Returns how many came or changed."""
        with self._transaction(writes=True) as connection:
            self._refresh(connection)
            before = {card.id: card for card in self.library.cards}
            self.library.merge(self._worded(card) for card in cards)
            self.library.forget(LIMIT)
            changed = tuple(card.id for card in self.library.cards if before.get(card.id) != card)
            self._save(connection, changed)
            gone = set(before) - {card.id for card in self.library.cards}
            connection.execute(delete(schema.cards).where(schema.cards.c.id.in_(gone)))
        return len(changed)

    def close(self) -> None:
        """Closes the connections."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Connection]:
        with explained(self.place), self._engine.connect().execution_options(writes=writes) as connection, connection.begin():
            yield connection

    def _refresh(self, connection: Connection) -> None:
        """Takes over what others have learnt since the last look."""
        table = schema.cards
        rows = connection.execute(select(table.c.stamp, table.c.body).where(table.c.stamp > self._seen).order_by(table.c.stamp)).all()
        self.library.put(self._worded(loads(Card, body)) for _, body in rows)
        self._seen = max((stamp for stamp, _ in rows), default=self._seen)

    def _save(self, connection: Connection, changed: tuple[str, ...]) -> None:
        table = schema.cards
        stamp = connection.execute(select(func.max(table.c.stamp))).scalar() or 0
        for name in changed:
            card = self.library.card(name)
            assert card is not None
            stamp += 1
            values = {"stamp": stamp, "body": dumps(card)}
            if connection.execute(update(table).where(table.c.id == name).values(values)).rowcount == 0:
                connection.execute(insert(table).values(id=name, **values))
        self._seen = max(self._seen, stamp)

    def _worded(self, card: Card) -> Card:
        """A shipped card keeps the words of this version; what was measured is the user's."""
        shipped = self._shipped.get(card.id)
        return card if shipped is None else shipped.measured_as(card)


def default_place() -> Path:
    """``WORKBENCH_EXPERIENCE``, else ``experience.db`` in the user's data folder."""
    if named := os.environ.get("WORKBENCH_EXPERIENCE"):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_data_dir("kernel-workbench", appauthor=False)) / "experience.db"

"""What all boards of one run show: its rows, the chart's points and the lines of its log, made ready once and kept up.

With ten thousand variants that takes half a second. A notebook shows a run in several places (boards, the record beside them), a cell
that is run again shows it once more, and each would do it anew.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from workbench.board import history, rows
from workbench.board.contract import Run
from workbench.board.packing import pack_columns
from workbench.board.words import SPOKEN, log_line
from workbench.candidate import Evaluation
from workbench.events import Prepared, RunStarted
from workbench.evolution.calm import calm

_known: WeakKeyDictionary[Run, Shown] = WeakKeyDictionary()
_guard = threading.Lock()

LOG_LINES = 1000
"""As many as are kept."""

Packed = tuple[dict[str, Any], list[bytes]]


class Shown:
    """The rows and points of one run. Every method may be called from any thread; `Shown.of` gives the one that a run has."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._packing = threading.Lock()
        self._judged: dict[str, tuple[int, Evaluation]] = {}
        self._heard = 0
        self._packed: Packed | None = None
        self._packed_at: tuple[int, int, int] = (0, 0, 0)
        self._lines: deque[dict[str, Any]] = deque(maxlen=LOG_LINES)
        self._said = 0
        self.begun: RunStarted | None = None
        self.prepared: Prepared | None = None

    @classmethod
    def of(cls, run: Run) -> Shown:
        """What the boards of a run share, as far as the run has come: while it had no board, nobody told of it."""
        with _guard:
            found = _known.get(run)
            if found is None:
                found = _known[run] = cls()
        with found._lock, calm():
            found.begun, found.prepared, judged = history.past(run)
            for one in judged[len(found._judged) :]:  # the others came in the same order
                found._number(one)
        return found

    def points(self, judged: Iterable[Evaluation] = ()) -> list[dict[str, Any]]:
        """The points of these evaluations, numbered in the order in which they were first heard of."""
        with self._lock:
            return [rows.point(*self._number(one)) for one in judged]

    def all_points(self) -> list[dict[str, Any]]:
        with self._lock:
            return [rows.point(number, one) for number, one in self._judged.values()]

    def heard(self) -> None:
        """Something has happened in the run: what is packed is packed anew when it is asked for."""
        with self._lock:
            self._heard += 1

    def packed(self, run: Run) -> Packed:
        """Rows and points as they travel, in the order in which they came; packed anew only where the run has gone on."""
        with self._packing, calm():  # meanwhile a board is made, and its log read
            with self._lock:  # read first: what happens from here on is packed the next time
                state = (self._heard, run.header()["seq"], len(self._judged))
                judged = [one for _, one in self._judged.values()]
            if self._packed is None or state != self._packed_at:
                points = rows.point_columns(judged)
                self._packed, self._packed_at = pack_columns(rows.columns(run), points), state
            return self._packed

    def _number(self, one: Evaluation) -> tuple[int, Evaluation]:
        found = self._judged.get(one.id)
        if found is None:
            found = self._judged[one.id] = len(self._judged) + 1, one
        return found

    def lines(self, run: Run) -> list[dict[str, Any]]:
        """The last lines of the log, as the store has it now."""
        with self._lock, calm():
            last = run.header()["seq"]
            if last > self._said:
                fresh = run.store.events(run.id, after=max(self._said, last - LOG_LINES), types=SPOKEN)
                self._lines += [line for line in map(log_line, fresh) if line is not None]
                self._said = max(last, fresh[-1].seq if fresh else 0)
            return list(self._lines)


def make_ready(run: Run) -> None:
    """Packs the run: who opens a stored run mostly shows it next, and in a thread of its own this would only take turns with that."""
    Shown.of(run).packed(run)

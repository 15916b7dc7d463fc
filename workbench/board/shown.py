"""What all boards of one run show: its rows, the chart's points and the lines of its log, read once and kept up.

A run of ten thousand variants is read in a third of a second, and packed in a tenth. A notebook shows it in several places (boards,
the record beside them), a cell that is run again shows it once more, and each would read it anew.
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
from workbench.evolution.calm import calm

_known: WeakKeyDictionary[Run, Shown] = WeakKeyDictionary()
_guard = threading.Lock()

LOG_LINES = 1000
"""As many as are kept."""

Packed = tuple[dict[str, Any], list[bytes]]


class Shown:
    """The rows and points of one run. Every method may be called from any thread; `Shown.of` gives the one that a run has."""

    def __init__(self, run: Run) -> None:
        self._lock = threading.RLock()
        self._cursor = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._points: dict[str, dict[str, Any]] = {}
        self._packed: Packed | None = None
        self._lines: deque[dict[str, Any]] = deque(maxlen=LOG_LINES)
        self._said = 0
        with calm():
            self.begun, self.prepared, judged = history.past(run)
            self.points(judged)

    @classmethod
    def of(cls, run: Run) -> Shown:
        with _guard:
            found = _known.get(run)
            if found is None:
                found = _known[run] = cls(run)
            return found

    def rows(self, run: Run) -> list[dict[str, Any]]:
        """All rows as they are now, in the order in which the variants came."""
        with self._lock, calm():
            last = run.header()["seq"]  # read first: what happens from here on is read the next time
            for row in rows.rows(run, max(0, self._cursor - 1)):
                if self._rows.get(row["id"]) != row:
                    self._rows[row["id"]] = row
                    self._packed = None
            self._cursor = last
            return list(self._rows.values())

    def points(self, judged: Iterable[Evaluation] = ()) -> list[dict[str, Any]]:
        """The points of these evaluations, numbered in the order in which they were first heard of."""
        with self._lock:
            found = []
            for one in judged:
                point = self._points.get(one.id)
                if point is None:
                    point = self._points[one.id] = rows.point(len(self._points) + 1, one)
                    self._packed = None
                found.append(point)
            return found

    def all_points(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._points.values())

    def packed(self, run: Run) -> Packed:
        """Rows and points as they travel; packed anew only where one of them has changed."""
        with self._lock:
            now = self.rows(run)
            if self._packed is None:
                with calm():
                    self._packed = pack_columns(now, self.all_points())
            return self._packed

    def lines(self, run: Run) -> list[dict[str, Any]]:
        """The last lines of the log, as the store has it now."""
        with self._lock, calm():
            last = run.header()["seq"]
            if last > self._said:
                fresh = run.store.events(run.id, after=max(self._said, last - LOG_LINES), types=SPOKEN)
                self._lines += [line for line in map(log_line, fresh) if line is not None]
                self._said = max(last, fresh[-1].seq if fresh else 0)
            return list(self._lines)

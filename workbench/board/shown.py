"""What all boards of one run show: its rows and the chart's points, read once and kept up.

A run of ten thousand variants is read in a third of a second. A notebook shows it in several places (boards, the record beside them),
and each would read it anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from workbench.board import history, rows
from workbench.board.contract import Run
from workbench.candidate import Evaluation
from workbench.evolution.calm import calm

_known: WeakKeyDictionary[Run, Shown] = WeakKeyDictionary()
_guard = threading.Lock()


class Shown:
    """The rows and points of one run. Every method may be called from any thread; `Shown.of` gives the one that a run has."""

    def __init__(self, run: Run) -> None:
        self._lock = threading.RLock()
        self._cursor = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._points: dict[str, dict[str, Any]] = {}
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
                self._rows[row["id"]] = row
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
                found.append(point)
            return found

    def all_points(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._points.values())

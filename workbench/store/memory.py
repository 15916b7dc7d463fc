"""A store that keeps nothing: for runs without a database, and for machines without SQLAlchemy."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from workbench.errors import NoSuchRunError, StoreError
from workbench.events import Event, RunStarted, Stamped
from workbench.records import dumps
from workbench.store.calls import KeptCall
from workbench.store.names import choose_to_clean, find_run
from workbench.store.summary import RunSummary, fold


class MemoryStore:
    """The methods and promises of `Store`, but for durability: everything is gone with the process."""

    place = "memory"

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._events: dict[str, list[Stamped]] = {}
        self._runs: dict[str, RunSummary] = {}
        self._calls: dict[str, list[KeptCall]] = {}

    def append(self, run: str, event: Event, *, owner: str = "") -> Stamped:
        """Adds one event."""
        return self.extend(run, (event,), owner=owner)[0]

    def extend(self, run: str, events: Sequence[Event], *, owner: str = "") -> tuple[Stamped, ...]:
        """Adds several events at once."""
        with self._lock:
            if run not in self._runs and not (events and isinstance(events[0], RunStarted)):
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            summary = self._runs.get(run) or RunSummary(id=run, owner=owner)
            if owner and summary.owner != owner:
                raise StoreError(f"{run}: another process goes on with this run; open it anew to take it back")
            stamps = []
            for event in events:
                stamps.append(Stamped(run=run, seq=summary.last + 1, time=self._clock(), event=event))
                # Written out as the database would: what it could not keep is refused here too.
                summary = fold(summary, stamps[-1], len(dumps(event)))
            self._events.setdefault(run, []).extend(stamps)
            self._runs[run] = summary
            return tuple(stamps)

    def claim(self, run: str, owner: str) -> None:
        """Makes `owner` the one who goes on with a run."""
        with self._lock:
            self._runs[run] = replace(self.run(run), owner=owner)

    def events(
        self, run: str, after: int = 0, types: Iterable[str] = (), limit: int | None = None, *, short: bool = False
    ) -> tuple[Stamped, ...]:  # fmt: skip
        """The events of a run in order, from number `after` + 1 on; only those of `types` if any are named, at most `limit`.

        Nothing is made shorter here: it all lies in memory.
        """
        wanted = frozenset(types)
        with self._lock:
            if run not in self._events:
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            found = (stamped for stamped in self._events[run][after:] if not wanted or stamped.type in wanted)
            return tuple(itertools.islice(found, limit))

    def keep_call(self, run: str, call: KeptCall) -> KeptCall:
        """Keeps a call to a language model."""
        with self._lock:
            if run not in self._runs:
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            kept = replace(call, number=len(self._calls.setdefault(run, [])) + 1, time=self._clock())
            self._calls[run].append(kept)
            return kept

    def calls(self, run: str, brief: str = "", key: str = "") -> tuple[KeptCall, ...]:
        """The calls of a run in order; only those that serve one brief, or that sent one request, if it is named."""
        with self._lock:
            return tuple(one for one in self._calls.get(run, ()) if brief in ("", one.brief) and key in ("", one.key))

    def runs(self, cell: str | None = None) -> tuple[RunSummary, ...]:
        """All runs, the newest first; with `cell` only those of that notebook cell."""
        with self._lock:
            found = [run for run in self._runs.values() if cell is None or run.cell == cell]
        return tuple(sorted(found, key=lambda run: (-run.created, run.id)))

    def run(self, name: str) -> RunSummary:
        """The run of that id, or the only one whose id begins with it; ``last`` is the newest."""
        return find_run(self.place, self.runs(), name)

    def clean(self, runs: Iterable[str] = (), *, older_than_days: float | None = None) -> tuple[str, ...]:
        """Forgets runs: those named, and those that had no event for so many days."""
        gone = choose_to_clean(self.runs(), self.run, tuple(runs), older_than_days, self._clock())
        with self._lock:
            for run in gone:
                del self._runs[run], self._events[run]
                self._calls.pop(run, None)
        return gone

    def close(self) -> None:
        """Nothing to close."""

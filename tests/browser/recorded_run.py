"""A run played back from its events: everything that the board asks of one, without a search or a judge behind it.

It lets a test decide when which event happens. Verbs are noted in `asked`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from workbench.errors import MisuseError
from workbench.events import Asked, RunStarted, Stamped
from workbench.evolution.stream import Stream
from workbench.evolution.view import Detail, View
from workbench.store import KeptCall


class _Stored:
    """The events that have happened, as a store gives them."""

    def __init__(self, stamped: Sequence[Stamped]) -> None:
        self._events = stamped

    def events(self, run: str, after: int = 0, types: Iterable[str] = ()) -> Sequence[Stamped]:
        wanted = frozenset(types)
        return [stamped for stamped in self._events[after:] if not wanted or stamped.type in wanted]


class RecordedRun:
    """`play` lets the next events happen and tells the subscribers."""

    def __init__(self, stamped: Sequence[Stamped], *, live: bool = True, calls: Sequence[KeptCall] = ()) -> None:
        first = stamped[0].event
        assert isinstance(first, RunStarted)
        self.id, self.task = stamped[0].run, first.task
        self.alive = live
        self.stream = Stream()
        self.inspected: list[tuple[str, str, dict[str, str]]] = []
        self.reports: dict[str, dict[str, Any]] = {}
        self._calls = tuple(calls)
        self.asked: list[tuple[str, ...]] = []
        self._view = View()
        self._briefs: dict[str, Any] = {}
        self._coming = list(stamped)
        self._events: list[Stamped] = []
        self._callbacks: list[Callable[[Stamped], Any]] = []
        self._lock = threading.RLock()
        self.play(1)

    def play(self, count: int | None = None) -> RecordedRun:
        """Lets the next `count` events happen; all of them by default."""
        now, self._coming = (self._coming, []) if count is None else (self._coming[:count], self._coming[count:])
        for stamped in now:
            with self._lock:
                self._view.fold(stamped)
                self._events.append(stamped)
                if isinstance(stamped.event, Asked):
                    self._briefs[stamped.event.brief.id] = stamped.event.brief
            for callback in list(self._callbacks):
                callback(stamped)
        return self

    @property
    def state(self) -> Any:
        return self._view.state

    @property
    def store(self) -> _Stored:
        return _Stored(self._events)

    def subscribe(self, callback: Callable[[Stamped], Any]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def events(self, after: int = 0) -> Sequence[Stamped]:
        return self._events[after:]

    def header(self) -> dict[str, Any]:
        with self._lock:
            return self._view.header()

    def rows(self, after: int = 0) -> list[dict[str, Any]]:
        with self._lock:
            return self._view.rows(after)

    def candidate(self, name: str) -> Detail:
        with self._lock:
            found = self._view.candidate(name)
        return Detail(**{**vars(found), "brief": self._briefs.get(found.candidate.brief)})

    def calls(self, brief: str = "") -> Sequence[KeptCall]:
        return tuple(call for call in self._calls if not brief or call.brief == brief)

    def inspect(self, evaluation: str, what: str, *, cancel: Any = None, **options: str) -> dict[str, Any]:
        self.inspected.append((evaluation, what, options))
        return self.reports.get(what, {"error": f"nothing was recorded of {what}: look at another variant"})

    def _do(self, *asked: str) -> RecordedRun:
        if self.state == "ended":
            raise MisuseError("the run has ended; start a new one")
        self.asked.append(asked)
        return self

    def step(self, n: int = 1) -> RecordedRun:
        return self._do("step")

    def auto(self) -> RecordedRun:
        return self._do("auto")

    def pause(self) -> RecordedRun:
        return self._do("pause")

    def resume(self) -> RecordedRun:
        return self._do("resume")

    def stop(self) -> RecordedRun:
        return self._do("stop")

    def cancel(self) -> RecordedRun:
        return self._do("cancel")

    def hint(self, text: str, island: str = "") -> RecordedRun:
        return self._do("hint", text, *([island] if island else []))

    def ban(self, text: str) -> RecordedRun:
        return self._do("ban", text)

    def pin(self, name: str) -> RecordedRun:
        return self._do("pin", name)

    def branch(self, name: str) -> RecordedRun:
        return self._do("branch", name)

    def submit(self, source: str, backend: Any = None, *, parent: str = "") -> RecordedRun:
        return self._do("submit", source, str(backend), *([parent] if parent else []))

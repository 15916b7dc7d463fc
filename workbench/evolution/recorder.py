"""Events go to the store first, then to whoever watches."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from workbench.errors import StoreError
from workbench.events import Event, Stamped
from workbench.evolution.view import View
from workbench.store import KeptCall

Subscriber = Callable[[Stamped], Any]
log = logging.getLogger(__name__)


class AnyStore(Protocol):
    """What a run needs of a store; `store.Store` and `store.MemoryStore` have it."""

    place: str

    def extend(self, run: str, events: tuple[Event, ...], *, owner: str = "") -> tuple[Stamped, ...]: ...
    def append(self, run: str, event: Event, *, owner: str = "") -> Stamped: ...
    def events(
        self, run: str, after: int = 0, types: tuple[str, ...] = (), limit: int | None = None, *, short: bool = False
    ) -> tuple[Stamped, ...]: ...  # fmt: skip
    def keep_call(self, run: str, call: KeptCall) -> KeptCall: ...
    def calls(self, run: str, brief: str = "", key: str = "") -> tuple[KeptCall, ...]: ...
    def claim(self, run: str, owner: str) -> None: ...
    def runs(self, cell: str | None = None) -> tuple[Any, ...]: ...
    def run(self, name: str) -> Any: ...


class Recorder:
    """Stores, then publishes. When the store fails, events are kept in order until it works again, and none is published as stored.

    Attributes:
        view: the read models; `lock` guards them.
        trouble: why the store fails; empty while it works.
        unsaved, unsaved_calls: the events, and the calls to models, that wait for it.
    """

    def __init__(self, store: AnyStore, run: str, view: View, owner: str) -> None:
        self.store, self.run, self.view, self.owner = store, run, view, owner
        self.lock = threading.RLock()
        self.trouble = ""
        self.unsaved: list[Event] = []
        self.unsaved_calls: list[KeptCall] = []
        self._subscribers: list[Subscriber] = []

    def add(self, *events: Event) -> bool:
        """Keeps events, all in one transaction; False while the store fails."""
        self.unsaved += events
        return self.flush()

    def keep_call(self, call: KeptCall) -> bool:
        """Keeps a call to a model; False while the store fails."""
        self.unsaved_calls.append(call)
        return self.flush()

    def calls(self, key: str) -> list[KeptCall]:
        """The calls of this run that sent one request."""
        try:
            kept = self.store.calls(self.run, key=key)
        except StoreError:
            kept = ()
        return [*kept, *(call for call in self.unsaved_calls if call.key == key)]

    def flush(self) -> bool:
        """Tries to store what waits: calls before the events that rest on them."""
        if not self.unsaved and not self.unsaved_calls:
            return True
        try:
            while self.unsaved_calls:
                self.store.keep_call(self.run, self.unsaved_calls[0])
                del self.unsaved_calls[0]
            stamps = self.store.extend(self.run, tuple(self.unsaved), owner=self.owner) if self.unsaved else ()
        except StoreError as error:
            self.trouble = str(error)
            return False
        self.trouble = ""
        self.unsaved.clear()
        if stamps and stamps[0].seq > self.view.seq + 1:  # somebody else wrote to the run in the meantime: an accept in another notebook
            with contextlib.suppress(StoreError):
                stamps = self.store.events(self.run, after=self.view.seq)
        for stamped in stamps:
            self._publish(stamped)
        return True

    def note(self, event: Event) -> None:
        """Adds an event to a run that somebody else may be going on with: it is not taken from them.

        Raises:
            StoreError: the store fails.
        """
        self.store.append(self.run, event)
        self.catch_up()

    def catch_up(self) -> None:
        """Shows what was stored since the last event seen, by whoever went on with the run."""
        for stamped in self.store.events(self.run, after=self.view.seq):
            self._publish(stamped)

    def show(self, event: Event) -> None:
        """Publishes something that can't be stored now, with the number 0: that the store fails, for instance."""
        self._publish(Stamped(run=self.run, seq=0, time=time.time(), event=event))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Calls `subscriber` with each event from now on; returns what ends that."""
        with self.lock:
            self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            with self.lock:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)

        return unsubscribe

    def _publish(self, stamped: Stamped) -> None:
        with self.lock:
            self.view.fold(stamped)
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            try:
                subscriber(stamped)
            except Exception:  # whoever watches must not be able to stop the run
                log.exception("a subscriber of run %s failed on %s", self.run, stamped.type)

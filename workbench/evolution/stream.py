"""What models write while they write it: for whoever watches now, never stored."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

Listener = Callable[["Written"], Any]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written:
    """News of an answer that is being written.

    Attributes:
        what: ``begins`` (a model was chosen), ``text`` (a piece has come), ``void`` (the call failed: what came so far counts for
            nothing, another attempt may follow), ``ends`` (the answer is whole).
        brief: id of the brief that it answers.
        text: the piece, or for ``void`` the reason.
        why: why this model was chosen.
    """

    what: Literal["begins", "text", "void", "ends"]
    brief: str
    model: str = ""
    text: str = ""
    why: str = ""


@dataclass(frozen=True)
class Writing:
    """An answer as far as it has come."""

    brief: str
    model: str
    why: str
    text: str = ""
    since: float = 0.0


class Stream:
    """The answers that are being written in one run. Any thread may listen and read; the run's thread writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._open: dict[str, Writing] = {}

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with all news from now on, in the run's thread; returns what ends that. It must return quickly."""
        with self._lock:
            self._listeners.append(listener)

        def leave() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return leave

    def open(self) -> tuple[Writing, ...]:
        """The answers that are being written now."""
        with self._lock:
            return tuple(self._open.values())

    def close(self, brief: str) -> None:
        """Nothing more comes for that brief."""
        if any(one.brief == brief for one in self.open()):
            self.tell(Written("ends", brief))

    def tell(self, news: Written) -> None:
        with self._lock:
            old = self._open.get(news.brief) or Writing(news.brief, news.model, news.why, since=time.time())
            if news.what == "ends":
                self._open.pop(news.brief, None)
            elif news.what == "begins":
                self._open[news.brief] = Writing(news.brief, news.model, news.why, since=time.time())
            else:
                self._open[news.brief] = replace(old, text=old.text + news.text if news.what == "text" else "")
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(news)
            except Exception:  # whoever watches must not be able to stop the run
                log.exception("a listener to the models failed")

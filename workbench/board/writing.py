"""What models write while they write it, for the browsers: pieces, at most ten times a second, however fast the models are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from workbench.board.contract import Send
from workbench.board.feed import INTERVAL


class Writings:
    """Follows the stream of a run.

    Each message names every answer that is open, and carries of each only what came since the last message: `at` is where in the text
    the piece begins. A browser that holds less than `at` has missed a message and asks for the whole.

    Args:
        stream: as `workbench.evolution.stream.Stream`; None where the run has no models that can be heard.
        send: sends a message to every browser, on this object's own thread.
    """

    def __init__(self, stream: Any, send: Send, *, clock: Callable[[], float] = time.time) -> None:
        self._stream = stream
        self._send = send
        self._clock = clock
        self._lock = threading.Lock()
        self._sent: dict[str, tuple[float, int]] = {}
        self._failed: dict[str, str] = {}
        self._news = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._leave: Callable[[], None] = stream.listen(self._hear) if stream is not None else (lambda: None)

    def whole(self) -> None:
        """Sends every open answer from its beginning, for a browser that has just come."""
        with self._lock:
            self._sent.clear()
            if self._stream is not None and self._stream.open():
                self._tell()

    def close(self) -> None:
        """Hears no more."""
        self._leave()
        self._closed.set()
        self._news.set()

    def _hear(self, news: Any) -> None:
        """Called on the run's thread, for every piece: only takes note."""
        if news.what == "void":
            self._failed[news.brief] = news.text
        elif news.what in ("begins", "ends"):
            self._failed.pop(news.brief, None)
        self._news.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="models at work", daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            if self._closed.is_set():
                return
            with self._lock:
                self._tell()
            self._closed.wait(INTERVAL)

    def _tell(self) -> None:
        answers = []
        sent: dict[str, tuple[float, int]] = {}
        for one in self._stream.open():
            since, at = self._sent.get(one.brief, (one.since, 0))
            if since != one.since or at > len(one.text):  # another attempt: what came before counts for nothing
                at = 0
            answers.append({
                "brief": one.brief, "model": one.model, "why": one.why, "seconds": max(0.0, self._clock() - one.since), "at": at,
                "text": one.text[at:], "failed": self._failed.get(one.brief, ""),
            })  # fmt: skip
            sent[one.brief] = (one.since, len(one.text))
        self._sent = sent
        self._send({"type": "writing", "answers": answers})

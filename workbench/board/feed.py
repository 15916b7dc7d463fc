"""From a run's events to the messages that a browser can follow.

The server between kernel and browser drops messages beyond a rate and tells nobody, so deltas are few (ten a second, each with
everything that changed since the last) and numbered: a browser that sees a gap asks for a snapshot. After a pause the first few come
at once: what is proposed and judged in one breath is on the screen without waiting for the next tenth of a second.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from workbench import events
from workbench.board import rows
from workbench.board.contract import Run, Send, SendFile
from workbench.board.shown import LOG_LINES, Shown
from workbench.board.words import log_line
from workbench.events import Stamped
from workbench.evolution.calm import calm

INTERVAL = 0.1
"""Seconds between two deltas in the long run."""

BURST = 3
"""Deltas that may follow each other at once after a pause."""


class Feed:
    """Follows one run. `send` gets deltas on the feed's own thread, and snapshots on the thread that asks for one.

    Args:
        run: what is followed.
        send: sends a message to every browser.
        shown: told of each delta's number and header.
        packed: sends snapshots in its stead, as columns with the bytes beside them (type ``packed``).
    """

    def __init__(
        self, run: Run, send: Send, *, shown: Callable[[int, dict[str, Any]], None] | None = None, packed: SendFile | None = None
    ) -> None:
        self._run = run
        self._send = send
        self._shown = shown
        self._packed = packed
        self._seq = 0
        self._lock = threading.RLock()
        self._views: set[str] | None = None
        """Those that look; None until one has said its name: to whoever may look before, everything is sent."""
        self._queue: deque[Stamped] = deque()
        self._news = threading.Event()
        self._closed = threading.Event()
        self._end = run.subscribe(self._hear)
        last = run.header()["seq"]
        self._cursor = last
        self._all = Shown.of(run)
        self._prepared = self._all.prepared
        begun = self._all.begun
        self._texts = {"reference": run.task.reference, "cell": begun.cell_source if begun is not None else ""}
        self._roof = rows.roof(run.task)
        self._before = last
        self._past: list[dict[str, Any]] | None = None
        """Lines of the log up to event `_before`; None while nobody has asked for them."""
        self._owed = False
        """Whether a snapshot went without the log, since nobody had read it yet: it follows in a delta of its own."""
        self._heard: deque[dict[str, Any]] = deque(maxlen=LOG_LINES)
        self._thread = threading.Thread(target=self._follow, name=f"board of {run.id}", daemon=True)
        self._thread.start()

    @property
    def seq(self) -> int:
        """The number of the last delta."""
        return self._seq

    def snapshot(self, view: str = "") -> None:
        """Sends everything that a browser needs to begin. No delta comes between its making and its sending.

        Args:
            view: which view asks; from now on there are deltas until it leaves.
        """
        with self._lock, calm():
            if view:
                self._views = (self._views or set()) | {view}
            rest = {"seq": self._seq, "header": rows.header(self._run, self._prepared), "texts": self._texts, "roof": self._roof}
            if self._packed is None:
                self._send(
                    {"type": "snapshot", **rest, "log": self._log(), "upserts": rows.rows(self._run), "points": self._all.all_points()}
                )
            else:
                self._owed = self._past is None
                columns, buffers = self._all.packed(self._run)
                self._packed({"type": "packed", **rest, "log": [] if self._owed else self._log(), **columns}, buffers)

    def leave(self, view: str) -> None:
        """A view is gone. While there is none nothing is sent: who comes gets a snapshot."""
        with self._lock:
            if self._views is not None:
                self._views.discard(view)

    def flush(self) -> bool:
        """Sends what is new, now. False where nothing is."""
        with self._lock:
            if self._owed:
                self._settle()
            points, lines, heard = self._drain()
            if not heard:
                return False
            last = self._run.header()["seq"]  # read first: what happens from here on comes with the next delta
            header = rows.header(self._run, self._prepared)
            if self._views is not None and not self._views:
                self._cursor = last
                if self._shown is not None:
                    self._shown(self._seq, header)
                return True
            # An event that could not be stored bears no number, so the rows of the last number are sent once more.
            changed = rows.rows(self._run, max(0, self._cursor - 1))
            self._cursor = last
            self._seq += 1
            self._send({"type": "delta", "seq": self._seq, "upserts": changed, "points": points, "log": lines, "header": header})
            if self._shown is not None:
                self._shown(self._seq, header)
            return True

    def close(self) -> None:
        """Ends the subscription and the thread."""
        self._closed.set()
        self._end()
        self._news.set()

    def _hear(self, stamped: Stamped) -> None:
        """Called on the run's thread: only takes note."""
        self._queue.append(stamped)
        self._news.set()

    def _follow(self) -> None:
        if self._packed is not None:  # while the browser loads the module that will ask for it
            self._all.packed(self._run)
        self._all.lines(self._run)
        with self._lock:
            self._settle()
        left, counted = float(BURST), time.monotonic()
        while not self._closed.is_set():
            self._news.wait()
            self._news.clear()
            if self._closed.is_set():
                return
            now = time.monotonic()
            left, counted = min(float(BURST), left + (now - counted) / INTERVAL), now
            if left < 1.0:
                if self._closed.wait((1.0 - left) * INTERVAL):
                    return
                left, counted = 1.0, time.monotonic()
            left -= 1.0
            self.flush()

    def _settle(self) -> None:
        """Reads the log, and sends it to those whose snapshot went without."""
        lines = self._log()
        if self._owed and self._views != set():
            self._seq += 1
            header = rows.header(self._run, self._prepared)
            self._send({"type": "delta", "seq": self._seq, "upserts": [], "points": [], "log": lines, "header": header})
            if self._shown is not None:
                self._shown(self._seq, header)
        self._owed = False

    def _log(self) -> list[dict[str, Any]]:
        """The last lines: what the run had said before, and what was heard since."""
        if self._past is None:
            self._past = [line for line in self._all.lines(self._run) if line["seq"] <= self._before]
        return [*self._past, *(line for line in self._heard if not 0 < line["seq"] <= self._before)][-LOG_LINES:]

    def _drain(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
        """New points and log lines, and whether anything was heard at all."""
        points: list[dict[str, Any]] = []
        lines: list[dict[str, Any]] = []
        heard = False
        while self._queue:
            stamped = self._queue.popleft()
            heard = True
            line = log_line(stamped)
            if line is not None:
                lines.append(line)
            if isinstance(stamped.event, events.Prepared):
                self._prepared = stamped.event
            if isinstance(stamped.event, events.Evaluated):
                points += self._all.points([stamped.event.evaluation])
        self._heard += lines
        if heard:
            self._all.heard()
        return points, lines, heard

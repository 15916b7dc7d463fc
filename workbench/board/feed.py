"""From a run's events to the messages that a browser can follow.

The server between kernel and browser drops messages beyond a rate and tells nobody, so deltas are few (at most ten a second, each
with everything that changed since the last) and numbered: a browser that sees a gap asks for a snapshot.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench import events
from workbench.board.contract import Run, Send
from workbench.board.words import log_line

INTERVAL = 0.1
"""Seconds between two deltas at least."""

LOG_LINES = 1000
"""As many as a snapshot carries."""


class Feed:
    """Follows one run. `send` gets deltas on the feed's own thread, and snapshots on the thread that asks for one."""

    def __init__(self, run: Run, send: Send, *, shown: Callable[[int, dict[str, Any]], None] | None = None) -> None:
        self._run = run
        self._send = send
        self._shown = shown
        self._seq = 0
        self._cursor = 0
        self._points: list[dict[str, Any]] = []
        self._islands: dict[str, str] = {}
        self._log: deque[dict[str, Any]] = deque(maxlen=LOG_LINES)
        self._pending = _Pending()
        self._lock = threading.RLock()
        self._news = threading.Event()
        self._closed = threading.Event()
        self._end = run.subscribe(lambda _: self._news.set())
        self._read()
        self._pending = _Pending()
        self._thread = threading.Thread(target=self._follow, name=f"board of {run.id}", daemon=True)
        self._thread.start()

    @property
    def seq(self) -> int:
        """The number of the last delta."""
        return self._seq

    def snapshot(self) -> None:
        """Sends everything that a browser needs to begin. No delta comes between its making and its sending."""
        with self._lock:
            self._read()
            self._send({
                "type": "snapshot", "seq": self._seq, "upserts": self._run.rows(), "points": list(self._points),
                "log": list(self._log), "header": self._run.header(),
                "texts": {"reference": self._run.task.reference, "cell": self._run.cell_source},
            })  # fmt: skip

    def flush(self) -> bool:
        """Sends what is new, now. False where nothing is."""
        with self._lock:
            self._read()
            if not self._pending:
                return False
            pending, self._pending = self._pending, _Pending()
            self._seq += 1
            header = self._run.header()
            self._send({
                "type": "delta", "seq": self._seq, "upserts": self._run.rows(tuple(pending.rows)) if pending.rows else [],
                "points": pending.points, "log": pending.log, "header": header,
            })  # fmt: skip
            if self._shown is not None:
                self._shown(self._seq, header)
            return True

    def close(self) -> None:
        """Ends the subscription and the thread."""
        self._closed.set()
        self._end()
        self._news.set()

    def _follow(self) -> None:
        while not self._closed.is_set():
            self._news.wait()
            self._news.clear()
            if self._closed.is_set():
                return
            self.flush()
            self._closed.wait(INTERVAL)

    def _read(self) -> None:
        """Takes in the events since the last call. What a snapshot reads stays pending: other browsers still need it."""
        for stamped in self._run.events(self._cursor):
            self._cursor = stamped.seq
            self._pending.any = True
            self._pending.rows.update(dict.fromkeys(touched(stamped.event)))
            line = log_line(stamped)
            if line is not None:
                self._log.append(line)
                self._pending.log.append(line)
            point = self._point(stamped.event)
            if point is not None:
                self._points.append(point)
                self._pending.points.append(point)

    def _point(self, event: events.Event) -> dict[str, Any] | None:
        """The chart's point of an evaluation."""
        if isinstance(event, events.Submitted):
            self._islands[event.candidate.id] = event.candidate.island
        if isinstance(event, events.Proposed) and event.proposal.candidate is not None:
            self._islands[event.proposal.candidate.id] = event.proposal.candidate.island
        if not isinstance(event, events.Evaluated):
            return None
        evaluation = event.evaluation
        timing = evaluation.timing
        return {
            "n": len(self._points) + 1, "evaluation": evaluation.id, "candidate": evaluation.candidate,
            "verdict": evaluation.verdict.value, "time_us": timing.median_us if timing is not None else None,
            "island": self._islands.get(evaluation.candidate, ""), "modelled": timing is not None and timing.modelled,
        }  # fmt: skip


@dataclass
class _Pending:
    """What the next delta carries. `any` is true also where nothing but the header has changed."""

    any: bool = False
    rows: dict[str, None] = field(default_factory=dict)
    points: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.any


def touched(event: events.Event) -> tuple[str, ...]:
    """Ids of the candidates whose rows an event changes."""
    match event:
        case events.Proposed(proposal=proposal) if proposal.candidate is not None:
            return (proposal.candidate.id, *proposal.candidate.parents)
        case events.Submitted(candidate=candidate):
            return (candidate.id, *candidate.parents)
        case events.Evaluated(evaluation=evaluation):
            return (evaluation.candidate,)
        case events.AcceptedCandidate(evidence=evidence):
            return (evidence.candidate,)
        case events.Acted(verb="pin", argument=argument):
            return (argument,)
    return ()

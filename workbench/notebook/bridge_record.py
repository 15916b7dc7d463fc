"""A run as JSON that a notebook keeps: what the board shows, without a kernel, in a front end that has the extension.

The record is the board's own snapshot with the best variants in full. It stands beside the HTML in the static output, so it is held to
a size that a saved notebook can bear.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

from workbench.errors import WorkbenchError

_log = logging.getLogger(__name__)

MIME = "application/vnd.kernel-workbench.run.v1+json"
"""Named in ``extensions/bridge.ts`` too."""
VERSION = 1
ROWS = 150
"""Variants in a record at most; the fastest stay."""
POINTS = 1500
"""Points of its chart at most; each best so far stays."""
LINES = 120
"""Lines of its log at most; the last stay."""
DETAILED = 6
"""Variants of which the record has the source and the evaluations, at most."""
LARGEST = 240_000
"""Bytes of a record at most, as JSON; details go first."""
SPARING = 20
"""A record that took t seconds to make is made again after 20 t at the earliest."""


def record(run: Any, headline: str = "") -> dict[str, Any]:
    """The record of a run as it stands.

    Args:
        run: an `Evolution`, alive or opened from the store.
        headline: the outcome in one line.
    """
    from workbench.board import rows as board_rows

    snapshot = _snapshot(run)
    rows = snapshot["upserts"]
    order = sorted(rows, key=_rank)
    kept = order[:ROWS]
    snapshot["upserts"] = sorted(kept, key=lambda row: row["order"])
    snapshot["points"] = _thinned(snapshot["points"])
    snapshot["log"] = snapshot["log"][-LINES:]
    snapshot["header"] = snapshot["header"] | {"live": False}
    made: dict[str, Any] = {
        "version": VERSION,
        "headline": headline,
        "snapshot": snapshot,
        "details": {},
        "left_out": len(rows) - len(kept),
    }
    size = _size(made)
    while size > LARGEST and len(kept) > 10:
        kept = kept[: len(kept) // 2]
        snapshot["upserts"] = sorted(kept, key=lambda row: row["order"])
        snapshot["points"], snapshot["log"] = snapshot["points"][-10 * len(kept) :], snapshot["log"][-len(kept) :]
        made["left_out"] = len(rows) - len(kept)
        size = _size(made)
    for row in kept[:DETAILED]:
        try:
            detail = board_rows.detail(run, row["id"])
        except WorkbenchError:
            continue
        size += _size(detail)
        if size > LARGEST:
            break
        made["details"][row["id"]] = detail
    return made


class Records:
    """The records of one run as it goes on. Making one reads the whole run, so none is made again too soon."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._last: dict[str, Any] | None = None
        self._next = 0.0

    def bundle(self, headline: str, *, now: bool = False) -> dict[str, Any]:
        """What a display adds to its mime bundle: the record, perhaps an earlier one unless it must be as of `now`.

        Empty where the board's room can't be used: the static output then stands alone.
        """
        with self._lock:
            began = time.monotonic()
            if self._last is not None and not now and began < self._next:
                self._last = self._last | {"headline": headline}
                return {MIME: self._last}
            try:
                self._last = record(self._run, headline)
            except Exception:  # the static output must stand, whatever is wrong with the record
                _log.debug("no record of %s", self._run.id, exc_info=True)
                return {} if self._last is None else {MIME: self._last}
            self._next = began + (time.monotonic() - began) * (1 + SPARING)
            return {MIME: self._last}


def _snapshot(run: Any) -> dict[str, Any]:
    from workbench.board.feed import Feed

    sent: list[dict[str, Any]] = []
    feed = Feed(run, sent.append)
    try:
        feed.snapshot()
    finally:
        feed.close()
    return next(dict(message) for message in sent if message["type"] == "snapshot")


def _rank(row: dict[str, Any]) -> tuple[bool, bool, float, int]:
    """Right ones by time, then the others, as the board ranks them."""
    time_us = row["time_us"]
    return (row["verdict"] != "right", row["verdict"] != "lower_precision", time_us if time_us is not None else float("inf"), row["order"])


def _thinned(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Few enough points to keep: each one that was the fastest so far, and an even choice of the others."""
    if len(points) <= POINTS:
        return points
    best, fastest = float("inf"), set()
    for at, point in enumerate(points):
        if point["verdict"] == "right" and point["time_us"] is not None and point["time_us"] < best:
            best = point["time_us"]
            fastest.add(at)
    step = len(points) / POINTS
    return [points[at] for at in sorted({*fastest, *(int(place * step) for place in range(POINTS))})]


def _size(made: Any) -> int:
    return len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode())

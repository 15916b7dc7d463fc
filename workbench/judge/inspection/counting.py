"""Hardware counters of one call: ncu around a fresh sandboxed worker, in which nothing is counted but that call.

The tool runs inside the sandbox, with the rights of the candidate that it watches (see `watched`), and its report lies where the candidate
could have written it. So the figures are a claim, for people to look at: nothing is judged by them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.explain.inspection import Metric
from workbench.judge.correctness.checks import in_words
from workbench.judge.inspection import counters, ncu
from workbench.judge.isolation import sandbox
from workbench.judge.isolation.process import Worker, WorkerLost

SECONDS = 180.0
"""For everything but waiting for the card: the start of a worker under ncu takes seconds, and each launch is run some ten times."""

_RUNS = 3
"""A card may lack a counter, and ncu then counts nothing: it is asked again without that one."""

_REPORT = "counters.csv"
_WATCHED = sandbox.PACKAGE / "judge" / "workers" / "watched.py"


class NotCounted(Exception):
    """Why there are no counters, in one line with the mend."""


@dataclass(frozen=True)
class Counted:
    """The table, and what there is to say about it."""

    metrics: tuple[Metric, ...]
    note: str


Starts = Callable[[Sequence[str], Sequence[Path]], AbstractContextManager[Worker]]
Holds = Callable[[bool], AbstractContextManager[object]]


def wrapper(tool: ncu.Tool, names: Sequence[str]) -> tuple[str, ...]:
    """What stands before the worker's own command. The report's place is meant from the worker's directory, where `watched` goes first."""
    return (sys.executable, "-I", "-B", str(_WATCHED), *ncu.command(tool.binary, names, _REPORT))


def counted(
    tool: ncu.Tool, start: Starts, orders: Sequence[Mapping[str, Any]], *, capability: int, least_bytes: float, card: Holds,
) -> Counted:  # fmt: skip
    """Counts one call.

    Args:
        start: gives a worker that is not started yet, behind this wrapper, and may read these places; closes it in the end.
        orders: to load the variant, and to have it called once between cudaProfilerStart and Stop.
        capability: the card's compute capability (major).
        least_bytes: of the inputs and outputs.
        card: holds the card while it is used: for the call alone, for what comes before it (true) beside others who do not time.

    Raises:
        NotCounted: ncu could not, or the variant fails.
        WorkerLost: the process was lost for a reason of its own: it was cancelled, took too long or too much memory.
    """
    names = counters.names(capability)
    until = time.monotonic() + SECONDS
    said = ""
    for _ in range(_RUNS):
        said = _said(tool, start, names, orders, card, until)
        missing = ncu.unknown(said, names)
        if not missing or counters.read(said):
            break
        names = tuple(name for name in names if name not in missing)
    launches = counters.read(said)
    fault = ncu.complaint(said)
    if not launches:
        raise NotCounted(f"no hardware counters: {fault or 'ncu printed no table'}")
    return Counted(counters.metrics(launches, capability, least_bytes), _note(launches, capability, said, fault))


def _said(
    tool: ncu.Tool, start: Starts, names: Sequence[str], orders: Sequence[Mapping[str, Any]], card: Holds, until: float
) -> str:  # fmt: skip
    """All that ncu said of one process."""
    waited = 0.0

    def left() -> float:
        return max(1.0, until + waited - time.monotonic())

    @contextlib.contextmanager
    def holding(shared: bool) -> Iterator[None]:
        nonlocal waited
        asked = time.monotonic()
        with card(shared):
            waited += time.monotonic() - asked
            yield

    with start(wrapper(tool, names), tool.places) as worker:
        try:
            worker.start()
            worker.wait_awake(left())
            with holding(True):
                worker.wait_ready(left())
                for order in orders[:-1]:
                    _answered(worker.ask(order, left()))
            with holding(False):
                _answered(worker.ask(orders[-1], left()))
            log = worker.finish(left())
        except WorkerLost as lost:
            # Where ncu can't go on it takes the process along: then it has said why.
            said = _report(worker.directory / _REPORT) + "\n" + worker.log
            if lost.kind != "ended" or not (ncu.complaint(said) or ncu.unknown(said, names)):
                raise
            return said
        return _report(worker.directory / _REPORT) + "\n" + log


def _answered(answer: Mapping[str, Any]) -> None:
    if "error" in answer:
        said = answer["error"]
        raise NotCounted(f"the variant fails when it runs: {in_words(said)}" if isinstance(said, dict) else "its process sent nonsense")


def _report(path: Path) -> str:
    """What lies there, as far as it is a plain file of a sane size. The candidate could have put anything there."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        parts: list[bytes] = []
        while sum(map(len, parts)) < counters.LARGEST and (part := os.read(file, 1 << 16)):
            parts.append(part)
        return b"".join(parts).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _note(launches: Sequence[counters.Launch], capability: int, said: str, fault: str) -> str:
    notes = ["one warm call, each launch run again for every few counters, with cold caches and the card's own clocks"]
    if len(launches) >= ncu.LAUNCHES:
        notes.append(f"of its first {ncu.LAUNCHES} launches")
    if lacking := counters.lacking(launches, capability):
        notes.append(f"this card or ncu lacks {', '.join(lacking)}")
    if "Backing up device memory" in said:
        notes.append("the card had no room for copies, so they went through the host's memory")
    if fault:
        notes.append(f"a part is missing: {fault}")
    return "; ".join(notes)

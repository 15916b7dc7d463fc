"""What the person wants of a run: step, auto, pause, resume, stop, cancel. The four words of the last are defined here, once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from workbench.events import RunState


class Control:
    """The person's wishes, read by the loop. Lives in the loop's thread.

    - *pause*: no new candidates; running ones finish; the run can resume.
    - *stop*: finish the running ones and end.
    - *cancel*: kill them and end.
    - *resume*: go on.

    Attributes:
        credits: candidates that may still be asked for before the run waits for the next Step; endless in auto.
        changed: set whenever the loop should look again.
    """

    def __init__(self, steps: float) -> None:
        self.credits = steps
        self.paused = False
        self.stopping = ""
        self.cancelled = False
        self.changed = asyncio.Event()

    @property
    def auto(self) -> bool:
        return self.credits == float("inf")

    def step(self, count: int) -> None:
        """So many candidates more, then wait. Ends auto and pause."""
        self.credits = count if self.auto else self.credits + count
        self.paused = False

    def run_on(self) -> None:
        """Without waiting, to the end."""
        self.credits, self.paused = float("inf"), False

    def grant(self) -> None:
        """One more candidate, which the person asked for by name."""
        self.credits += 1

    def use(self) -> None:
        """A candidate was asked for."""
        self.credits -= 1

    def stop(self, reason: str, cancel: bool = False) -> None:
        """End when what runs has finished; with `cancel` at once."""
        self.stopping = self.stopping or reason
        self.cancelled = self.cancelled or cancel

    def may_ask(self) -> bool:
        return self.credits > 0 and not self.paused and not self.stopping


class Stopwatch:
    """Seconds that a run was really at work, the start of its judge included; waiting and pauses don't count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._kept = 0.0

    def follow(self, state: RunState) -> None:
        """Runs while the state is preparing, running or stopping."""
        runs = state in ("preparing", "running", "stopping")
        if runs and self._since is None:
            self._since = self._clock()
        elif not runs and self._since is not None:
            self._kept += self._clock() - self._since
            self._since = None

    @property
    def runs(self) -> bool:
        return self._since is not None

    def take(self) -> float:
        """The seconds since the last call."""
        if self._since is not None:
            now = self._clock()
            self._kept += now - self._since
            self._since = now
        taken, self._kept = self._kept, 0.0
        return taken

    @property
    def pending(self) -> float:
        """What the next `take` would give."""
        return self._kept + (self._clock() - self._since if self._since is not None else 0.0)

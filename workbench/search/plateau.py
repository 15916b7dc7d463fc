"""When nothing gets faster any more: change the roles, then the ancestor, then stop."""

from __future__ import annotations

import enum

from workbench.brief import Budget

PATIENCE = 16
GAIN = 0.01
"""A best that is less than one percent faster is worth having, but no reason to go on."""


class Stage(enum.IntEnum):
    """What is tried against the plateau."""

    CLIMBING = 0
    OTHER_ROLES = 1
    OTHER_ANCESTOR = 2
    STOPPED = 3


class Plateau:
    """Counts evaluations since the last gain. Each `patience` of them without one moves on to the next stage; a gain goes back.

    Attributes:
        stage: what is being tried.
        shift: by how many places the islands' roles are moved.
        story: what the last gain was and what it cost, for people.
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self.patience = patience
        self.stage = Stage.CLIMBING
        self.shift = 0
        self.since = 0
        self.best_us: float | None = None
        self.story = "there has been no right candidate"
        self._paid = Budget(evaluations=0, tokens=0)

    def told(self, best_us: float | None, best: str, spent: Budget) -> str:
        """Takes in one evaluation; says in one line what changes now, if anything does."""
        if best_us is not None and (self.best_us is None or best_us < self.best_us * (1 - GAIN)):
            self._gained(best_us, best, spent)
            return ""
        self.since += 1
        if self.stage is Stage.STOPPED or self.since < self.patience * (self.stage + 1):
            return ""
        self.stage = Stage(self.stage + 1)
        if self.stage is Stage.OTHER_ROLES:
            self.shift += 1
            return f"plateau: {self.since} evaluations without a gain; every island now takes up its neighbour's role"
        if self.stage is Stage.OTHER_ANCESTOR:
            return f"plateau: {self.since} evaluations without a gain; going on from other elites than the best"
        return ""

    @property
    def verdict(self) -> str:
        """Why the run stops here; empty unless it does."""
        if self.stage is not Stage.STOPPED:
            return ""
        return f"plateau: {self.since} evaluations without a gain, other roles and other ancestors included; {self.story}"

    def reopen(self) -> None:
        """The person wants to go on: patience starts anew."""
        self.stage, self.since = Stage.CLIMBING, 0

    def _gained(self, best_us: float, best: str, spent: Budget) -> None:
        evaluations = (spent.evaluations or 0) - (self._paid.evaluations or 0)
        tokens = (spent.tokens or 0) - (self._paid.tokens or 0)
        cost = f"{evaluations} evaluation{'s' if evaluations != 1 else ''}" + (f" and {tokens} tokens" if tokens else "")
        gain = f"to {best_us:.2f} µs" if self.best_us is None else f"from {self.best_us:.2f} to {best_us:.2f} µs"
        self.story = f"the last gain, {gain} by {best}, cost {cost}"
        self.best_us, self._paid, self.since, self.stage = best_us, spent, 0, Stage.CLIMBING

"""Whether a repair is the better bet: how often repairs and fresh candidates have come out right in this run."""

from __future__ import annotations

from workbench.brief import BriefKind

_PRIOR = {"repair": (2.0, 4.0), "fresh": (2.0, 4.0)}
"""Right ones and all, as if they had been seen: little, and no better for one than for the other. Where they are even, a repair is tried
first."""


class Odds:
    """Counts what came of fresh candidates (steps, crossovers, open seeds) and of repairs.

    A repair that succeeds gives a right candidate, and so does a fresh one: whichever is right more often gets to the next right candidate
    with fewer evaluations. Which it is depends on who writes, so it is measured and not assumed.
    """

    def __init__(self) -> None:
        self._right = {kind: right for kind, (right, _) in _PRIOR.items()}
        self._all = {kind: count for kind, (_, count) in _PRIOR.items()}

    def told(self, kind: BriefKind, right: bool, nearer: bool = False) -> None:
        """One more candidate was judged. A repair that only came nearer than its parent counts half."""
        name = "repair" if kind == "repair" else "fresh"
        self._right[name] += 1.0 if right else 0.5 if nearer else 0.0
        self._all[name] += 1

    @property
    def favour_repair(self) -> bool:
        """Whether a repair is at least as likely to be right as a fresh candidate."""
        return self._right["repair"] / self._all["repair"] >= self._right["fresh"] / self._all["fresh"]

    @property
    def story(self) -> str:
        """Which of the two goes first now, and why, for people."""
        share = {kind: f"{self._right[kind] / self._all[kind]:.0%}" for kind in _PRIOR}
        first = "repairs go first again" if self.favour_repair else "repairs wait"
        return f"{first}: of them {share['repair']} come out right, of fresh candidates {share['fresh']}"

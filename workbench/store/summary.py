"""A run in one line: what the list of runs shows. Folded from the run's events, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from workbench.events import BestChanged, Ended, Evaluated, Proposed, RunStarted, Stamped, StateChanged
from workbench.store.owners import is_this_process, runs_here


@dataclass(frozen=True)
class RunSummary:
    """One run of a store.

    Attributes:
        id: what `workbench.open` takes.
        name: of the op; `task`: the id of its Task; `cell`: the notebook cell that it came from, or empty.
        state: as of its last event. A run whose process was killed keeps the state that it died in; see `as_seen`.
        created, updated: seconds since the epoch.
        best: id of the fastest right candidate, empty where there is none; `best_us`: its time, `modelled` where no GPU took it.
        last: the sequence number of its last event.
        bytes: what its events take in the store.
        owner: which process writes to it, see `Store.claim`.
    """

    id: str
    name: str = ""
    target: str = ""
    task: str = ""
    cell: str = ""
    state: str = "preparing"
    reason: str = ""
    created: float = 0.0
    updated: float = 0.0
    candidates: int = 0
    evaluations: int = 0
    best: str = ""
    best_us: float | None = None
    modelled: bool = False
    last: int = 0
    bytes: int = 0
    owner: str = ""

    def as_seen(self) -> RunSummary:
        """The summary as people should read it: a run that has not ended, and whose process is gone, is interrupted."""
        if self.state == "ended" or is_this_process(self.owner) or runs_here(self.owner):
            return self
        return replace(self, state="interrupted")

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.created).strftime("%Y-%m-%d %H:%M")
        best = "nothing right yet" if self.best_us is None else f"best {self.best} {self.best_us:.2f} µs"
        size = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e6 else f"{self.bytes / 1e3:.0f} kB"
        label = " modelled" if self.modelled and self.best_us is not None else ""
        return (
            f"{self.id}  {when}  {self.target}  {self.state}  {self.candidates} candidates, {self.evaluations} evaluations, "
            f"{best}{label}  {size}"
        )


def fold(summary: RunSummary, stamped: Stamped, size: int) -> RunSummary:
    """The summary after one more event, whose body takes `size` bytes."""
    summary = replace(summary, updated=stamped.time, last=stamped.seq, bytes=summary.bytes + size)
    match stamped.event:
        case RunStarted(task=task, cell=cell):
            return replace(summary, name=task.name, target=task.target, task=task.id, cell=cell, created=stamped.time)
        case StateChanged(state=state, reason=reason):
            return replace(summary, state=state, reason=reason)
        case Ended(reason=reason):
            return replace(summary, state="ended", reason=reason)
        case Proposed(proposal=proposal) if proposal.candidate is not None:
            return replace(summary, candidates=summary.candidates + 1)
        case Evaluated(evaluation=evaluation):
            modelled = evaluation.timing.modelled if evaluation.timing else summary.modelled
            return replace(summary, evaluations=summary.evaluations + 1, modelled=modelled)
        case BestChanged(candidate=candidate, time_us=time):
            return replace(summary, best=candidate, best_us=time)
    return summary

"""What the board needs of a run's past when it opens: from the run's own memory where it has one, else from the store."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.board.contract import Run
from workbench.candidate import Evaluation
from workbench.events import Evaluated, Prepared, RunStarted

Past = tuple[RunStarted | None, Prepared | None, Sequence[Evaluation]]


def past(run: Run) -> Past:
    """How it began, what the judge said last when it was ready, and every evaluation in the order in which the judge spoke."""
    told = getattr(run, "told", None)
    if told is not None:  # ten thousand evaluations are not read from the store a second time
        known: Past = told()
        return known
    begun: RunStarted | None = None
    ready: Prepared | None = None
    judged = []
    for stamped in run.store.events(run.id, types=(RunStarted.__name__, Prepared.__name__, Evaluated.__name__)):
        match stamped.event:
            case RunStarted() as event:
                begun = event
            case Prepared() as event:
                ready = event
            case Evaluated(evaluation=evaluation):
                judged.append(evaluation)
    return begun, ready, judged

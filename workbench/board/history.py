"""What the board reads of a run's stored events when it opens: few types of them, however long the run was."""

from __future__ import annotations

from workbench.board.contract import Run
from workbench.candidate import Evaluation
from workbench.events import Evaluated, Prepared, RunStarted


def started(run: Run) -> RunStarted | None:
    """How the run began: with the notebook cell's text."""
    found = run.store.events(run.id, types=(RunStarted.__name__,))
    return next((stamped.event for stamped in found if isinstance(stamped.event, RunStarted)), None)


def prepared(run: Run) -> Prepared | None:
    """What the judge said last when it was ready; None before."""
    found = run.store.events(run.id, types=(Prepared.__name__,))
    return next((stamped.event for stamped in reversed(found) if isinstance(stamped.event, Prepared)), None)


def evaluations(run: Run) -> list[Evaluation]:
    """Every evaluation, in the order in which the judge spoke."""
    found = run.store.events(run.id, types=(Evaluated.__name__,))
    return [stamped.event.evaluation for stamped in found if isinstance(stamped.event, Evaluated)]

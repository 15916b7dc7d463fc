"""Records for the store's tests."""

from __future__ import annotations

from workbench.brief import Brief, Budget, Parent, Proposal, Role
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.events import Asked, BestChanged, Evaluated, Noted, Proposed, RunStarted, Spent, StateChanged
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

TASK = Task(
    name="softmax", reference="def softmax(x):\n    return x.softmax(-1)\n" + "# a long comment\n" * 200, entry="softmax",
    inputs=(InputSpec("x", (8, 8), "float32", (8, 1), Values("normal", {"std": 1.5})),),
    outputs=(OutputSpec((8, 8), "float32", (8, 1)),), work=Work(bytes=512, flops=320),
)  # fmt: skip
STARTED = RunStarted(task=TASK, budget=Budget(evaluations=9), seed=3, proposers=("experts",), cell="cell-1", cell_source="softmax(x)")


def candidate(number: int, **more) -> Candidate:
    return Candidate(f"k{number}", "triton", f"# {number}\n" + "# code\n" * 100, "softmax", brief=f"b{number}", **more)


def evaluation(number: int, time: float | None = None) -> Evaluation:
    timing = None if time is None else Timing(time, time, time, time, time, modelled=True)
    verdict = Verdict.WRONG if time is None else Verdict.RIGHT
    return Evaluation(
        f"k{number}.0", f"k{number}", TASK.id, verdict, timing=timing, parameters={"BLOCK": 64}, error_ratio=float("inf")
    )  # fmt: skip


def turn(number: int, time: float | None = 9.0) -> list:
    """The events of one candidate."""
    parent = Parent(candidate(1), evaluation(1, 12.5))
    brief = Brief(f"b{number}", "step", f"k{number}", Role("tiles", "aim", ("hint",)), TASK, parents=(parent,))
    events = [
        Asked(brief), Proposed(Proposal(brief.id, candidate(number))), Evaluated(brief.id, evaluation(number, time)),
        Spent(Budget(evaluations=number, tune=0)),
    ]  # fmt: skip
    if time is not None:
        events.append(BestChanged(f"k{number}", f"k{number}.0", time))
    return events


def whole_run() -> list:
    return [
        STARTED,
        StateChanged("running"),
        *turn(1, 12.5),
        *turn(2, None),
        Noted("a note – µs"),
        *turn(3, 9.25),
        StateChanged("waiting", "press Step"),
    ]

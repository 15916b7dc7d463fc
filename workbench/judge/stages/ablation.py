"""Does a candidate need its own kernels? Some carry one for show and let a library do the work.

In a fresh worker every launch of the candidate's own kernels does nothing. Whose outputs are right all the same gets a label.
"""

from __future__ import annotations

from workbench.candidate import Environment
from workbench.judge.context import Context
from workbench.judge.correctness.checks import Caller
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.isolation.process import WorkerLost
from workbench.judge.stages.running import load
from workbench.judge.timing.profile import own_names
from workbench.judge.trial import Stop, Trial, Unsupported

LABEL = "decoration: right without its own kernels"


def is_decoration(context: Context, trial: Trial, kind: InputSet) -> bool:
    """Whether the outputs on one kind of input are right although no own kernel ran."""
    if not own_names(trial.candidate.source):
        return False
    shadow = Trial(
        context.task, trial.candidate, trial.parameters, id="ablation", mode="quick", next_seed=context.seeds("ablation"), seed=None,
        environment=Environment(),
    )  # fmt: skip
    shadow.construction_seed = trial.construction_seed
    worker = context.pool.take("device")
    try:
        worker.ask({"do": "silence"}, context.limits.load)
        caller = Caller(shadow, worker, context.reference(), context.place, context.limits.call, trial.allowed)
        load(context, shadow, worker, caller)
        caller.check(kind, poison="nan")
    except (Stop, Unsupported, WorkerLost):
        return False
    finally:
        context.pool.discard(worker)
    return True

"""Last stage: measured against the baselines on a GPU; modelled without one, and then never called a speedup."""

from __future__ import annotations

import contextlib

from workbench.candidate import Timing
from workbench.judge.checks import in_words
from workbench.judge.context import Context, Workers
from workbench.judge.launches import Recording, Traffic
from workbench.judge.process import Worker, WorkerLost
from workbench.judge.stages.building import recorded
from workbench.judge.stages.running import FirstRun
from workbench.judge.trial import Stop, Trial
from workbench.records import decode, encode

_SAMPLED_PROGRAMS = 16


def time(context: Context, trial: Trial, workers: Workers, recording: Recording, first: FirstRun) -> None:
    """Fills in the trial's timing."""
    if context.measured:
        own = first.kind.specs == context.task.inputs and not first.kind.structure
        errors = tuple(output.error for output in first.expected.outputs) if own else None
        context.clock().time(trial, workers["device"], errors)
        if trial.mode == "full":  # the profiler takes seconds to start
            _share(context, trial, workers["device"])
        try:
            recorded(context, trial, workers["record"])
        except (Stop, WorkerLost) as error:
            trial.labels.add(f"kernels not described: {error}"[:200])
        return
    worker = workers["interpret"]
    answer = worker.ask({"do": "traffic", "inputs": encode(context.task.inputs), "sample": _SAMPLED_PROGRAMS}, context.limits.traffic)
    if "error" in answer:
        trial.labels.add(f"no modelled time: {in_words(answer['error'])}"[:200])
        return
    try:
        traffic = decode(Traffic, answer["traffic"])
        if traffic.error:
            trial.labels.add(f"modelled from a part: {traffic.error}"[:200])
        from workbench.judge.modelled import model_time

        trial.modelled = model_time(recording, traffic, context.target)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        trial.labels.add(f"no modelled time: {error}"[:200])
        return
    us = trial.modelled.total_us
    trial.timing = Timing(us, us, us, us, us, modelled=True)


def _share(context: Context, trial: Trial, worker: Worker) -> None:
    """How much of the GPU time is in the candidate's own kernels: a claim, so a label."""
    if context.device != "cuda":
        return
    answer = worker.ask({"do": "profile", "inputs": encode(context.task.inputs), "seed": trial.next_seed()}, context.limits.call)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        times = [(float(kernel["us"]), bool(kernel["own"])) for kernel in answer["kernels"]]
        if total := sum(us for us, _ in times):
            trial.own_share = sum(us for us, own in times if own) / total
            if trial.own_share < 0.5:
                trial.labels.add(f"own kernels take {trial.own_share:.0%} of the time")

"""Last stage: measured against the baselines on a GPU; modelled without one, and then never called a speedup."""

from __future__ import annotations

import contextlib

from workbench.candidate import Timing, Verdict
from workbench.judge.context import Context, Workers
from workbench.judge.correctness.checks import in_words
from workbench.judge.isolation.process import Worker, WorkerLost
from workbench.judge.recording.launches import Recording, Traffic
from workbench.judge.stages import ablation
from workbench.judge.stages.ablation import is_decoration
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
        if trial.mode == "full" and context.device == "cuda":  # the profiler takes seconds to start
            _profile(context, trial, workers["device"])
            if first.kind.own_shape and is_decoration(context, trial, first.kind):
                trial.labels.add(ablation.LABEL)
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
        from workbench.judge.recording.modelled import model_time

        trial.modelled = model_time(recording, traffic, context.target)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        trial.labels.add(f"no modelled time: {error}"[:200])
        return
    us = trial.modelled.total_us
    trial.timing = Timing(us, us, us, us, us, modelled=True)


def _profile(context: Context, trial: Trial, worker: Worker) -> None:
    """How much of the GPU time is in the candidate's own kernels, which is a label; and the time that the card was busy, on any stream.

    Raises:
        Stop: the card was busy for longer than the candidate's events say.
    """
    answer = worker.ask({"do": "profile", "inputs": encode(context.task.inputs), "seed": trial.next_seed()}, context.limits.call)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        times = [(float(kernel["us"]), bool(kernel["own"])) for kernel in answer["kernels"]]
        if total := sum(us for us, _ in times):
            trial.own_share = sum(us for us, own in times if own) / total
            if trial.own_share < 0.5:
                trial.labels.add(f"own kernels take {trial.own_share:.0%} of the time")
    with contextlib.suppress(KeyError, TypeError, ValueError):
        busy = float(answer["busy_us"])
        # How warm the caches are when the profiler looks is not known: the longer of both times is held against it.
        claimed = max(timing.median_us for timing in (trial.hot, trial.timing) if timing is not None)
        if claimed < 0.9 * busy - 2.0:
            raise Stop(
                Verdict.TIME_NOT_CONFIRMED,
                f"its events show {claimed:.1f} µs, but the profiler sees kernels for {busy:.1f} µs, on all streams together",
            )  # fmt: skip

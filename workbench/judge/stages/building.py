"""Second stage: every launch of the real shapes, compiled for the target."""

from __future__ import annotations

import contextlib

from workbench.candidate import Verdict
from workbench.judge.context import Context, Workers
from workbench.judge.correctness.checks import in_words
from workbench.judge.isolation.process import Worker, WorkerLost
from workbench.judge.recording.launches import Recording
from workbench.judge.trial import Stop, Trial
from workbench.records import decode, encode

_RECORDED = {
    "build": Verdict.DOES_NOT_BUILD, "raised": Verdict.CRASHED, "unsupported": Verdict.CRASHED, "elsewhere": Verdict.NOT_JUDGED,
}  # fmt: skip
"""At the Task's own shapes a launcher has to work, so even "not for this shape" is a failure there."""

MISFIT = "launch does not fit: "
_MISFIT_SECONDS = 20.0
CUDA_ELSEWHERE = "CUDA C++ is built here, and judged on a GPU"


def build(context: Context, trial: Trial, workers: Workers) -> Recording:
    """Orders the recording, and waits for it where there is no GPU.

    Without a GPU this comes first: what does not build is not interpreted. On a GPU the candidate's own first call compiles, and the
    recorder, which a launcher may be too clever for, only tells what the kernels take; so nobody waits for it until the end.
    """
    task = context.task
    context.take("record", workers).send({
        "do": "record", "source": trial.candidate.source, "entry": trial.candidate.entry, "parameters": encode(trial.parameters),
        "inputs": encode(task.inputs), "format": task.format, "init_args": encode(task.init_args),
    })  # fmt: skip
    context.input_sets()  # meanwhile
    if context.measured:
        return Recording()
    recording = recorded(context, trial, workers["record"])
    if any(launch.resources.backend == "cuda" for launch in recording.launches) or trial.candidate.backend == "cuda":
        raise Stop(Verdict.NOT_JUDGED, CUDA_ELSEWHERE)
    return recording


def note_misfit(context: Context, trial: Trial, workers: Workers, verdict: Verdict) -> None:
    """For a CUDA candidate that failed on a GPU: whether its launch and its kernel fit together, which the driver does not check.

    The recorder knows. What it says is a label: the verdict stands on what was seen.
    """
    if verdict not in (Verdict.WRONG, Verdict.CRASHED) or not context.measured or "record" not in workers:
        return
    if "CUDA C++" not in trial.labels:
        return
    with contextlib.suppress(Stop, WorkerLost, KeyError, TypeError, ValueError, AttributeError):
        error = decode(Recording, workers["record"].receive(_MISFIT_SECONDS)["recording"]).error
        if error is not None and error.kind == "raised" and error.message.startswith("LaunchError: "):
            where = f" (line {error.line})" if error.line else ""
            trial.labels.add(f"{MISFIT}{error.message.removeprefix('LaunchError: ')[:300]}{where}")


def recorded(context: Context, trial: Trial, worker: Worker) -> Recording:
    """Waits for what was recorded, and notes what the kernels take.

    Raises:
        Stop: it does not build, or its launcher raises at the Task's own shapes.
    """
    answer = worker.receive(context.limits.build)
    if "error" in answer:
        raise Stop(Verdict.NOT_JUDGED, f"it could not be recorded: {in_words(answer['error'])}")
    try:
        recording = decode(Recording, answer["recording"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Stop(Verdict.REFUSED, "its process sent what no worker sends") from error
    trial.resources = recording.resources
    trial.labels |= set(recording.labels)
    if not context.measured and recording.error is None and not recording.launches:
        trial.own_share = 0.0
        trial.labels.add("own kernels 0 %")
    silent = recording.error is not None and recording.error.message.startswith("the launcher returned no tensor")
    if recording.error is not None and not (silent and context.task.changes):  # what it changes is its result
        where = f" (line {recording.error.line})" if recording.error.line else ""
        trial.log = recording.error.log
        raise Stop(_RECORDED[recording.error.kind], recording.error.message + where)
    return recording

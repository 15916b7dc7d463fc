"""Second stage: every launch of the real shapes, compiled for the target."""

from __future__ import annotations

from workbench.candidate import Verdict
from workbench.judge.checks import in_words
from workbench.judge.context import Context, Workers
from workbench.judge.launches import Recording
from workbench.judge.process import Worker
from workbench.judge.trial import Stop, Trial
from workbench.records import decode, encode

_RECORDED = {
    "build": Verdict.DOES_NOT_BUILD, "raised": Verdict.CRASHED, "unsupported": Verdict.CRASHED, "elsewhere": Verdict.NOT_JUDGED,
}  # fmt: skip
"""At the Task's own shapes a launcher has to work, so even "not for this shape" is a failure there."""

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
    if recording.error is not None:
        where = f" (line {recording.error.line})" if recording.error.line else ""
        trial.log = recording.error.log
        raise Stop(_RECORDED[recording.error.kind], recording.error.message + where)
    return recording

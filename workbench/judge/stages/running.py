"""Third stage: one small run, since most faults show at once."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from workbench.build.cuda_source import uses_extension
from workbench.candidate import Verdict
from workbench.judge.context import Context, Workers
from workbench.judge.correctness.checks import Caller, in_words, raise_error
from workbench.judge.correctness.expected import Expected
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.isolation.process import Worker
from workbench.judge.protocol import state
from workbench.judge.stages.variations import light_set, others
from workbench.judge.trial import Stop, Trial, Unsupported
from workbench.records import encode
from workbench.task import InputSpec


class FirstRun(NamedTuple):
    """The small run: who called, on what, and what was expected and came."""

    caller: Caller
    kind: InputSet
    expected: Expected
    outputs: list[torch.Tensor]


def run_once(context: Context, trial: Trial, workers: Workers) -> FirstRun:
    """The smallest set first. A candidate may refuse shapes that the Task does not list."""
    sets = context.input_sets()
    worker = context.take("device" if context.measured else "interpret", workers)
    seconds = _patience(context, trial, context.limits.call)
    caller = Caller(trial, worker, context.reference(), context.place, seconds, trial.allowed)
    load(context, trial, worker, caller)
    trial.reference = caller.reference
    trial.judged_by = "gpu" if context.device == "cuda" else "host" if context.measured else "interpreter"
    caller.drawn().plan(_planned(context, trial, sets[0]))
    for kind in sets:
        with may_refuse(trial, kind):
            return FirstRun(caller, kind, *caller.check(kind, poison="nan"))
    raise Stop(Verdict.NOT_JUDGED, f"the launcher refuses every shape that can be tried here: {trial.unsupported[0]}")


def _planned(context: Context, trial: Trial, first: InputSet) -> Iterator[tuple[InputSet, int]]:
    """What is called for after the first run, so that it can be worked out while the candidate is being compiled."""
    yield first, 1
    light = light_set(context, trial, first)
    if light is not first:
        yield light, 0
        yield light, 1
    for kind in others(context, trial, first, light):
        yield kind, 0


@contextlib.contextmanager
def may_refuse(trial: Trial, kind: InputSet) -> Iterator[None]:
    """Notes that the candidate does not support a shape, which is allowed."""
    try:
        yield
    except Unsupported as refusal:
        trial.unsupported.append(str(refusal))
        trial.labels.add(f"does not support {kind.shape}")


def _patience(context: Context, trial: Trial, usual: float) -> float:
    """Seconds: nvcc takes about a minute, where it is not known whether at loading or at the first call."""
    return max(usual, context.limits.extension) if uses_extension(trial.candidate.source) else usual


def load(context: Context, trial: Trial, worker: Worker, caller: Caller) -> None:
    """Has a worker load the candidate, with the same parameters as the reference where it is a model."""
    task = context.task
    answer = worker.ask({
        "do": "load", "source": trial.candidate.source, "entry": trial.candidate.entry, "parameters": encode(trial.parameters),
        "format": task.format, "init_args": encode(task.init_args), "device": context.place, "seed": trial.construction_seed,
        "changes": list(task.changed_positions),
    }, _patience(context, trial, context.limits.load))  # fmt: skip
    if "error" in answer:
        kinds = answer["error"].get("kinds") or () if isinstance(answer["error"], dict) else ()
        if "InterpreterUnsupported" in kinds:
            raise_error(answer["error"], listed=True, where="loading")
        raise Stop(Verdict.DOES_NOT_BUILD, in_words(answer["error"]) if isinstance(answer["error"], dict) else "it does not load")
    if caller.reference.module is None:
        return
    specs, seed = context.state_specs, trial.next_seed()
    answer = worker.ask({"do": "state", "specs": encode(specs), "seed": seed}, context.limits.load)
    if answer.get("redrawn") is True:
        state.redraw(caller.reference.module, specs, seed, context.place)
    else:
        trial.labels.add("parameters not redrawn")
        _check_neutral(specs, answer)
        caller.reference = context.fresh_reference(trial.construction_seed)


def _check_neutral(specs: Sequence[InputSpec], answer: Mapping[str, Any]) -> None:
    """Of a model that keeps its fresh state, parameters that are one constant must at least be somewhere in the candidate."""
    neutral = [spec.name for spec in specs if state.is_neutral(spec)]
    elements = answer.get("elements")
    if neutral and isinstance(elements, int) and elements < sum(math.prod(spec.shape) for spec in specs):
        raise Stop(
            Verdict.NOT_JUDGED,
            f"{', '.join(neutral)[:120]} of a fresh Model is constant, and the candidate has fewer parameters than the reference, so "
            "nobody would see that it leaves one out: give it parameters of the reference's names and shapes",
        )

"""How a candidate is judged.

This process knows the reference, the seeds, the truth and the clock, and never runs a line of the candidate. That happens in workers (see
`process`): closed in, used once, believed in nothing. A trial goes through stages, cheapest first, and each can end it with a verdict, a
reason in one line, and a witness:

    text -> build -> one small run -> correctness -> timing

What can't be judged here is `not_judged`, never wrong. Failure is data: `evaluate` raises for no candidate.
"""

from __future__ import annotations

import contextlib
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from workbench.candidate import Baseline, Candidate, Environment, Evaluation, Mode, Timing, Verdict
from workbench.errors import CaptureError
from workbench.events import Prepared, Qualification
from workbench.judge.context import Context, Workers
from workbench.judge.correctness import qualify
from workbench.judge.correctness.probe import disagreement
from workbench.judge.inspection import sanitizer
from workbench.judge.inspection.sanitized import Sanitized
from workbench.judge.isolation import sandbox
from workbench.judge.isolation.pool import Nursery
from workbench.judge.protocol import gpu, state
from workbench.judge.stages import building, correctness, running, text, timing
from workbench.judge.stages.variations import smallest_set
from workbench.judge.text import labels
from workbench.judge.trial import Limits, Stop, Trial
from workbench.judge.workers import generated
from workbench.task import Task

_FREED_SECONDS = 1.0
"""After which a killed process' memory on the card is free."""

_MUCH = 0.25

SILENT_ONCE = "judged twice: its process fell silent when it was timed first"
CROWDED_ONCE = "judged twice: it found no memory when it was timed first"

Device = Literal["auto", "cuda", "cpu", "host"]


class Judge:
    """Judges candidates of one task.

    Args:
        task: what to compute.
        device: ``cuda`` measures on the GPU; ``cpu`` interprets and models; ``auto`` takes the GPU where there is one. ``host`` goes the
            way of ``cuda`` with PyTorch on the CPU, so that the harness itself can be tested anywhere.
        seed: makes every draw repeatable. Marked in each evaluation, and never accepted as evidence.
        tier: how workers are closed in; the best that works here by default.
        limits: seconds that each stage may take.
        memory_cap: bytes that one worker may hold.
        nursery: shared by the judges of one process, so that what they fork from is imported once.
        baselines: of ``eager`` and ``compile``, those that are measured; both by default.

    Example:
        >>> judge = Judge(task)                                    # doctest: +SKIP
        >>> judge.evaluate(candidate, {}, id="k1.0").verdict       # doctest: +SKIP
        <Verdict.RIGHT: 'right'>
    """

    def __init__(
        self, task: Task, *, device: Device = "auto", seed: int | None = None, tier: sandbox.Tier | None = None,
        limits: Limits | None = None, memory_cap: int | None = None, nursery: Nursery | None = None,
        baselines: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.task = task
        self.context = Context(
            task, device=device, seed=seed, tier=tier, limits=limits, memory_cap=memory_cap, nursery=nursery, baselines=baselines,
        )  # fmt: skip
        self._pool = self.context.pool
        self._prepared: Prepared | None = None
        self._qualification: Qualification | None = None

    # What can be asked of it

    def prepare(self, probe: Mapping[str, Any] | None = None) -> Prepared:
        """Rebuilds the task, checks it against the live op, and finds what it costs today.

        Args:
            probe: what the live op returned for a seed, see `capture.probe`.

        Raises:
            CaptureError: the reference does not run, or is not what the live op computes.
        """
        from workbench.explain.roofline import floor_us

        context = self.context
        context.reference()
        notes = []
        if probe is not None and (fault := disagreement(self.task, probe, context.place)):
            raise CaptureError(f"the captured reference does not compute what the cell does: {fault}")
        if context.tier.mend:
            notes.append(f"candidates are {context.tier.name}: {context.tier.mend}")
        if not labels.kernelguard_available():
            notes.append("not scanned: KernelGuard is not installed")
        qualification = self.qualify()
        baselines = self._baselines()
        inductor, why_not = self._inductor()
        if why_not:
            notes.append(f"Inductor's own kernels are no seed: {why_not}")
        self._prepared = Prepared(
            floor_us=floor_us(self.task.work, context.target), baselines=baselines, device=self._device_in_words(),
            environment=self._environment(), notes=(*notes, *_in_words(qualification)), degenerate=qualification.degenerate,
            qualification=qualification, inductor=inductor,
        )  # fmt: skip
        if self._prepared.warning:
            self._prepared = replace(self._prepared, notes=(self._prepared.warning, *self._prepared.notes))
        return self._prepared

    def evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode = "quick") -> Evaluation:
        """The verdict on one candidate at one point of its tunable space.

        One that was right and falls silent or finds no memory when it is timed is judged once more, from the start: what others do to a
        card can be why.
        """
        self.context.cancelled.clear()
        found = self._evaluate(candidate, parameters, id=id, mode=mode)
        why = _chance(found)
        if not why or self.context.cancelled.is_set():
            return found
        found = self._evaluate(candidate, parameters, id=id, mode=mode)
        return replace(found, labels=tuple(sorted({*found.labels, why})))

    def _evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode) -> Evaluation:
        context = self.context
        root = context.root_seed()
        trial = Trial(
            self.task, candidate, parameters, id=id, mode=mode, next_seed=context.seeds("trial", root), seed=context.seed, root=root,
            environment=self._environment(),
        )  # fmt: skip
        trial.allowed = context.allowed()
        workers: Workers = {}
        try:
            with trial.stage("text"):
                text.read(context, trial)
            with trial.stage("build"):
                recording = building.build(context, trial, workers)
            with trial.stage("run"):
                first = running.run_once(context, trial, workers)
            with trial.stage("correctness"), context.checking():
                correctness.check(context, trial, workers, first, recording)
            with trial.stage("timing"):
                timing.time(context, trial, workers, recording, first)
            raise _passed(trial)
        except Stop as stop:
            stop = self._excused(stop, workers)
            building.note_misfit(context, trial, workers, stop.verdict)
            trial.log = "\n".join(log for log in (trial.log, *(worker.log.strip() for worker in workers.values())) if log)
            return trial.evaluation(stop)
        except CaptureError as error:
            return trial.evaluation(Stop(Verdict.NOT_JUDGED, f"the reference does not run here: {error}"))
        finally:
            for worker in workers.values():
                self._pool.discard(worker)
            self._pool.rest(True)

    def _excused(self, stop: Stop, workers: Workers) -> Stop:
        """A candidate that found no memory on a card that others fill is no worse for it."""
        if stop.verdict is not Verdict.CRASHED or "out of memory" not in stop.reason or self.context.device != "cuda":
            return stop
        for worker in workers.values():
            worker.kill()
        time.sleep(_FREED_SECONDS)
        others, total = gpu.held_by_others()
        if others < _MUCH * total:
            return stop
        return Stop(Verdict.NOT_JUDGED, f"out of memory on a card of which others hold {others / 2**30:.0f} of {total / 2**30:.0f} GiB")

    def sanitize(self, candidate: Candidate, parameters: Mapping[str, Any]) -> Sanitized:
        """What compute-sanitizer says of a candidate, see `sanitizer`."""
        return sanitizer.sanitize(self.context, candidate, dict(parameters))

    def measured(self) -> dict[str, Any]:
        """What has been measured of the baselines, as plain data."""
        return self.context.clock().measured() if self.context.measured else {}

    def adopt(self, measured: Mapping[str, Any]) -> None:
        """Takes over what another judge of the same card has measured."""
        if measured and self.context.measured:
            self.context.clock().adopt(measured)

    def cancel(self) -> None:
        """From any thread: kills what runs now; its evaluation becomes `not_judged`."""
        self.context.cancelled.set()
        self._pool.cancel()

    def close(self) -> None:
        """Kills all workers."""
        self.context.close()

    # What it says of the task and of this machine

    def qualify(self) -> Qualification:
        """Whether bad answers can be told from good ones on this op; found once."""
        if self._qualification is None:
            self._qualification = self._qualify()
        return self._qualification

    def _qualify(self) -> Qualification:
        context, task = self.context, self.task
        try:
            smallest = smallest_set(context)
        except Stop:
            return Qualification()
        seeds = context.seeds("qualify")
        module = context.reference().module
        if module is not None:  # as candidates get it: scales of one and biases of zero would hide what ignores them
            state.redraw(module, context.state_specs, seeds(), context.place)
        found: Qualification = qualify.qualify(
            context.reference(), smallest.specs, seeds, context.place, products=task.work.matmul_flops > 0,
            coarse=context.allowed() == 0, used=_used(task), updates=context.updates(),
        )  # fmt: skip
        if smallest.specs != task.inputs and not found.degenerate and not task.random and _is_cheap(task, context.place):
            with contextlib.suppress(Exception):  # at its own size the op may need more memory than there is
                full = qualify.full_size(context.reference(), task.inputs, (seeds(), seeds()), context.place)
                if full.degenerate:
                    found = replace(found, degenerate=full.degenerate, advice=full.advice)
        return found

    def _baselines(self) -> tuple[Baseline, ...]:
        if self.context.measured:
            return self.context.clock().baselines()
        from workbench.explain.roofline import eager_us

        time = eager_us(self.task, self.context.target)
        eager = Timing(time, time, time, time, time, modelled=True) if time is not None else None
        return (
            Baseline("eager", eager, "" if eager else "its graph could not be traced"),
            Baseline("compile", None, "needs a GPU to be measured"),
        )

    def _inductor(self) -> tuple[str, str]:
        """What torch.compile made of the op, as a candidate's source; or why it is none. Both empty where nothing was compiled."""
        told = self.context.clock().generated if self.context.measured else {}
        return generated.seed(self.task, told) if told else ("", "")

    def _device_in_words(self) -> str:
        if self.context.device == "cuda":
            return f"gpu: {torch.cuda.get_device_name()}"
        return "host" if self.context.measured else f"no GPU: interpreter, modelled for {self.context.target.name}"

    def _environment(self) -> Environment:
        try:
            import triton

            version = triton.__version__
        except ImportError:
            version = ""
        gpu = torch.cuda.get_device_name() if self.context.device == "cuda" else ""
        return Environment(platform.python_version(), torch.__version__, version, gpu, _driver() if gpu else "", self.context.tier.name)


_CHEAP_BYTES, _CHEAP_FLOPS = 128 << 20, 2e9
"""What an op may cost at its own size on a CPU to be looked at there too: a fraction of a second."""


def _is_cheap(task: Task, place: str) -> bool:
    factor = 100 if place == "cuda" else 1
    return task.work.bytes <= factor * _CHEAP_BYTES and task.work.flops <= factor * _CHEAP_FLOPS


def _used(task: Task) -> tuple[str, ...] | None:
    """Names of the arguments that the op's graph reads; None where there is no graph."""
    if not task.graph.nodes:
        return None
    read = {name for node in task.graph.nodes for name in node.refs()}
    return tuple(read | set(task.graph.outputs))


def _in_words(found: Qualification) -> Iterator[str]:
    """What a person should know of the op before the search."""
    if found.random.startswith("an op whose"):
        yield "the op is random: two runs on the same inputs differ, and candidates can't be compared"
    if found.blind and not found.degenerate:
        yield f"on these inputs {' and '.join(found.blind)} can't be told from the reference's own precision"
    if found.updates:
        yield f"each call updates {', '.join(found.updates[:4])}{' and more' if len(found.updates) > 4 else ''}: so must a kernel's"
    if found.truth:
        yield f"the truth is not in float64: {found.truth}"


def _chance(found: Evaluation) -> str:
    """Why it may come out otherwise when it is judged again; empty where nothing says so."""
    if "timing" not in found.stage_ms:
        return ""
    if found.verdict is Verdict.TIMED_OUT:
        return SILENT_ONCE
    lacks = found.verdict in (Verdict.CRASHED, Verdict.NOT_JUDGED) and "out of memory" in found.reason
    return CROWDED_ONCE if lacks else ""


def _passed(trial: Trial) -> Stop:
    if trial.precision:
        return Stop(Verdict.LOWER_PRECISION, f"right within the round-off of {trial.precision}, not within the reference's own")
    how = "right (distribution)" if trial.task.random else "right"
    return Stop(Verdict.RIGHT, f"{how} on {', '.join(trial.input_sets)}")


def _driver() -> str:
    from pathlib import Path

    with contextlib.suppress(OSError):
        if found := re.search(r"\b\d{3}\.\d+(\.\d+)?\b", Path("/proc/driver/nvidia/version").read_text()):
            return found[0]
    return ""

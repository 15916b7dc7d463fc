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
from collections.abc import Mapping
from typing import Any, Literal

import torch

from workbench.candidate import Baseline, Candidate, Environment, Evaluation, Mode, Timing, Verdict
from workbench.capture.references import Reference
from workbench.errors import CaptureError
from workbench.events import Prepared
from workbench.judge import labels, qualify, sandbox
from workbench.judge.context import Context, Workers
from workbench.judge.pool import Nursery
from workbench.judge.probe import disagreement
from workbench.judge.stages import building, correctness, running, text, timing
from workbench.judge.trial import Limits, Stop, Trial
from workbench.task import Task

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

    Example:
        >>> judge = Judge(task)                                    # doctest: +SKIP
        >>> judge.evaluate(candidate, {}, id="k1.0").verdict       # doctest: +SKIP
        <Verdict.RIGHT: 'right'>
    """

    def __init__(
        self, task: Task, *, device: Device = "auto", seed: int | None = None, tier: sandbox.Tier | None = None,
        limits: Limits | None = None, memory_cap: int | None = None, nursery: Nursery | None = None,
    ) -> None:  # fmt: skip
        self.task = task
        self.context = Context(
            task, device=device, seed=seed, tier=tier, limits=limits, memory_cap=memory_cap, nursery=nursery,
        )  # fmt: skip
        self._pool = self.context.pool
        self._prepared: Prepared | None = None

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
        reference = context.reference()
        notes = []
        if probe is not None and (fault := disagreement(self.task, probe, context.place)):
            raise CaptureError(f"the captured reference does not compute what the cell does: {fault}")
        if context.tier.mend:
            notes.append(f"candidates are {context.tier.name}: {context.tier.mend}")
        if not labels.kernelguard_available():
            notes.append("not scanned: KernelGuard is not installed")
        canary, note = self._qualify(reference)
        notes += [note] if note else []
        self._prepared = Prepared(
            floor_us=floor_us(self.task.work, context.target), baselines=self._baselines(), device=self._device_in_words(),
            environment=self._environment(), notes=tuple(notes), degenerate=canary,
        )  # fmt: skip
        return self._prepared

    def evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode = "quick") -> Evaluation:
        """The verdict on one candidate at one point of its tunable space."""
        context = self.context
        context.cancelled.clear()
        trial = Trial(
            self.task, candidate, parameters, id=id, mode=mode, next_seed=context.seeds(id), seed=context.seed,
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
            with trial.stage("correctness"):
                correctness.check(context, trial, first, recording)
            with trial.stage("timing"):
                timing.time(context, trial, workers, recording, first)
            raise _passed(trial)
        except Stop as stop:
            trial.log = "\n".join(log for worker in workers.values() if (log := worker.log.strip()))
            return trial.evaluation(stop)
        except CaptureError as error:
            return trial.evaluation(Stop(Verdict.NOT_JUDGED, f"the reference does not run here: {error}"))
        finally:
            for worker in workers.values():
                self._pool.discard(worker)

    def cancel(self) -> None:
        """From any thread: kills what runs now; its evaluation becomes `not_judged`."""
        self.context.cancelled.set()
        self._pool.cancel()

    def close(self) -> None:
        """Kills all workers."""
        self._pool.close()

    # What it says of the task and of this machine

    def _qualify(self, reference: Reference) -> tuple[str, str]:
        """The canary that passes, and a note for people, both empty for a sound op."""
        seeds = self.context.seeds("qualify")
        try:
            specs = self.context.input_sets()[0].specs
        except Stop as stop:
            return "", stop.reason
        if qualify.noisy(reference, specs, seeds(), self.context.place):
            return "", "the op is random: two runs on the same inputs differ, and candidates can't be compared"
        canary = qualify.degenerate(reference, specs, (seeds(), seeds()), self.context.place)
        return canary, f"degenerate: {canary} would pass as right, so no verdict means much; give wider inputs" if canary else ""

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


def _passed(trial: Trial) -> Stop:
    if trial.precision:
        return Stop(Verdict.LOWER_PRECISION, f"right within the round-off of {trial.precision}, not within the reference's own")
    return Stop(Verdict.RIGHT, f"right on {', '.join(trial.input_sets)}")


def _driver() -> str:
    from pathlib import Path

    with contextlib.suppress(OSError):
        if found := re.search(r"\b\d{3}\.\d+(\.\d+)?\b", Path("/proc/driver/nvidia/version").read_text()):
            return found[0]
    return ""

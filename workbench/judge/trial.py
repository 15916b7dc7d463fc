"""One candidate before the judge: what has been found so far, and how it ends."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.candidate import Candidate, Environment, Evaluation, Mode, ModelledTime, Resources, Speedup, Timing, Verdict, Witness
from workbench.capture.references import Reference
from workbench.judge.isolation.process import WorkerLost
from workbench.task import Task

_REASON_LIMIT = 400


class Stop(Exception):
    """The verdict is known. Raised by any stage, caught by `Judge.evaluate` alone."""

    def __init__(self, verdict: Verdict, reason: str, witness: Witness | None = None) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = " ".join(reason.split())[:_REASON_LIMIT]
        self.witness = witness


class Unsupported(Exception):
    """The launcher refused a shape that the Task does not list. That is allowed."""


@dataclass(frozen=True)
class Limits:
    """Seconds that each stage may take. A stage that takes longer ends in `timed_out`.

    `extension` is for loading, and for the first call of, a candidate that has nvcc build a C++ extension.
    """

    load: float = 60.0
    build: float = 120.0
    call: float = 60.0
    traffic: float = 60.0
    timing: float = 60.0
    extension: float = 180.0


class Trial:
    """What the stages of one judging hand on to each other."""

    def __init__(
        self, task: Task, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode, next_seed: Callable[[], int],
        seed: int | None, environment: Environment, root: int = 0,
    ) -> None:  # fmt: skip
        self.task, self.candidate, self.parameters = task, candidate, dict(parameters)
        self.mode = mode
        self.drawn = False
        """Whether any input was made: else there is nothing to see again."""
        self.next_seed = next_seed
        self.labels: set[str] = set()
        self.stage_ms: dict[str, float] = {}
        self.judged_by = ""
        self.input_sets: list[str] = []
        self.unsupported: list[str] = []
        self.precision = ""
        self.allowed = 0.0
        self.reference: Reference | None = None
        self.matched: float | None = None
        self.ratio: float | None = None
        self.resources: tuple[Resources, ...] = ()
        self.modelled: ModelledTime | None = None
        self.timing: Timing | None = None
        self.hot: Timing | None = None
        self.speedup: Speedup | None = None
        self.own_share: float | None = None
        self.log = ""
        self.construction_seed = root & 0x7FFFFFFF
        self._id, self._seed, self._environment, self._root = id, seed, environment, root

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times a stage, and turns the loss of a worker in it into a verdict."""
        started = time.perf_counter()
        try:
            yield
        except WorkerLost as lost:
            raise _after_loss(lost, name) from None
        finally:
            self.stage_ms[name] = round(self.stage_ms.get(name, 0.0) + (time.perf_counter() - started) * 1e3, 1)

    def compared(self, matched: float, ratio: float, precision: str) -> None:
        """Notes how an output compared; the worst stays."""
        self.matched = matched if self.matched is None else min(self.matched, matched)
        self.ratio = ratio if self.ratio is None else max(self.ratio, ratio)
        if precision == "bf16" or (precision and not self.precision):
            self.precision = precision

    def evaluation(self, end: Stop) -> Evaluation:
        """The record of it all."""
        return Evaluation(
            id=self._id, candidate=self.candidate.id, task=self.task.id, verdict=end.verdict, reason=end.reason, parameters=self.parameters,
            witness=end.witness, judged_by=self.judged_by, mode=self.mode, input_sets=tuple(self.input_sets), matched=self.matched,
            error_ratio=self.ratio if self.ratio is None or math.isfinite(self.ratio) else math.inf, stage_ms=dict(self.stage_ms),
            timing=self.timing, hot=self.hot, speedup=self.speedup, own_kernel_share=self.own_share, labels=tuple(sorted(self.labels)),
            resources=self.resources, modelled=self.modelled, log=self.log[-4000:], seed=self._seed,
            replay=self._root if self.drawn else None, environment=self._environment,
        )  # fmt: skip


def _after_loss(lost: WorkerLost, stage: str) -> Stop:
    if lost.kind == "timeout":
        return Stop(Verdict.TIMED_OUT, f"no answer in time in stage {stage}: the worker was killed")
    if lost.kind == "memory":
        return Stop(Verdict.CRASHED, f"killed in stage {stage}: {lost.detail}")
    if lost.kind == "garbled":
        return Stop(Verdict.REFUSED, f"its process sent what no worker sends: {lost.detail}")
    if lost.kind in ("cancelled", "start"):
        return Stop(Verdict.NOT_JUDGED, lost.detail)
    return Stop(Verdict.CRASHED, f"the worker died in stage {stage}: {lost.detail}")

"""A fleet whose judge is a formula, and a proposer that writes what the formula reads. For the loop's own logic."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from workbench.brief import Brief, Proposal, Usage
from workbench.candidate import Baseline, Candidate, Diagnosis, Evaluation, Resources, Timing, Verdict
from workbench.errors import JudgeLostError
from workbench.events import Prepared
from workbench.graph import Graph, Node
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

TASK = Task(
    name="double it", reference="def double(x):\n    return x * 2\n", entry="double",
    inputs=(InputSpec("x", (1024,), "float32", (1,), Values("normal")),),
    outputs=(OutputSpec((1024,), "float32", (1,)),), work=Work(bytes=8192, flops=1024),
    graph=Graph((Node("mul", "aten.mul.Tensor", ({"ref": "x"}, 2)),), ("mul",)),
)  # fmt: skip


def source_of(design: int, extra: str = "") -> str:
    """A module that takes 1000 / (1 + design) µs; a negative design is wrong."""
    return f"# design={design}\n{extra}\ndef double(x):\n    return x * 2\n"


class ScriptedFleet:
    """Judges by formula.

    Attributes:
        seconds: how long a judging takes; a function of the candidate's id, or the same for all.
        gate: if given, judgings wait until it is set.
        running, most: judgings at this moment, and the most at once.
        judged: ids of the evaluations in the order in which they ended.
    """

    def __init__(
        self, *, seconds: float | Callable[[str], float] = 0.0, prepare_seconds: float = 0.0, floor_us: float = 1.0,
        broken: str = "", lost: bool = False, device: str = "no GPU: scripted",
    ) -> None:  # fmt: skip
        self.seconds, self.prepare_seconds, self.floor_us, self.broken, self.lost = seconds, prepare_seconds, floor_us, broken, lost
        self.device = device
        self.running = self.most = 0
        self.judged: list[str] = []
        self.probe: Any = None
        self.closed = False
        self._cancelled = asyncio.Event()

    async def prepare(self, probe: Mapping[str, Any] | None) -> Prepared:
        await asyncio.sleep(self.prepare_seconds)
        self.probe = probe
        if self.broken:
            raise JudgeLostError(self.broken)
        timing = Timing(2000, 2000, 2000, 2000, 2000, modelled=True)
        return Prepared(self.floor_us, (Baseline("eager", timing),), self.device)

    async def evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: str = "quick") -> Evaluation:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            seconds = self.seconds(candidate.id) if callable(self.seconds) else self.seconds
            await asyncio.wait_for(self._cancelled.wait(), seconds or 0.0001)
            return Evaluation(id, candidate.id, TASK.id, Verdict.NOT_JUDGED, "cancelled")
        except TimeoutError:
            return self._judge(candidate, parameters, id)
        finally:
            self.running -= 1
            self.judged.append(id)

    def cancel(self) -> None:
        self._cancelled.set()

    async def close(self) -> None:
        self.closed = True

    def _judge(self, candidate: Candidate, parameters: Mapping[str, Any], id: str) -> Evaluation:
        if self.lost:
            return Evaluation(id, candidate.id, TASK.id, Verdict.NOT_JUDGED, "the judge was lost", parameters=dict(parameters))
        found = re.search(r"design=(-?\d+)", candidate.source)
        design = int(found[1]) if found else -1
        if design < 0:
            return Evaluation(id, candidate.id, TASK.id, Verdict.WRONG, "a witness", parameters=dict(parameters), matched=0.5)
        time = 1000 / (1 + design) * (0.75 if parameters.get("BLOCK") == 256 else 1.0)
        return Evaluation(
            id, candidate.id, TASK.id, Verdict.RIGHT, parameters=dict(parameters), judged_by="interpreter (8)", matched=1.0,
            timing=Timing(time, time, time, time, time, modelled=True), resources=(Resources("double", (4,), registers=32, occupancy=0.5),),
        )  # fmt: skip


class ScriptedProposer:
    """Each answer is a few designs better than its parents; nothing but the brief decides."""

    def __init__(self, name: str = "scripted", *, seconds: float = 0.0, tune: str = "", wrong_every: int = 0, gain: int = 3) -> None:
        self.name, self.seconds, self.tune, self.wrong_every, self.gain = name, seconds, tune, wrong_every, gain
        self.briefs: list[Brief] = []

    async def propose(self, brief: Brief) -> Proposal:
        self.briefs.append(brief)
        await asyncio.sleep(self.seconds)
        number = int(brief.id[1:])
        designs = [int(re.search(r"design=(-?\d+)", one.candidate.source)[1]) for one in brief.parents]
        design = max([0, *designs]) + random.Random(brief.seed).randrange(1, self.gain + 1)
        if self.wrong_every and number % self.wrong_every == 0:
            design = -1
        source = source_of(design, self.tune) + f"# {brief.id}\n"
        return Proposal(brief.id, Candidate("?", "triton", source, "?", proposer=self.name, plan=f"plan {number}"), usage=Usage(7, 3))


class Failing:
    """A proposer that raises, or has nothing."""

    def __init__(self, error: Exception | None = None, name: str = "failing") -> None:
        self.error, self.name = error, name

    async def propose(self, brief: Brief) -> Proposal:
        if self.error is not None:
            raise self.error
        return Proposal(brief.id, None, "nothing new on this island")


def diagnose(evaluation: Evaluation, task: Task, floor_us: float) -> Diagnosis:
    return Diagnosis(evaluation.id, "memory", "it moves bytes", f"move fewer bytes than {evaluation.candidate}", headroom=2.0)

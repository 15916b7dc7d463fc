"""One op after the other: each gets its experts judged, the fastest ones tuned, and the best judged once more.

The judge stays from op to op, and with it what its workers are forked from, so that nothing is imported twice.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.bench.experts import EVALUATIONS, Row, kind_of, row_from, seeds
from workbench.candidate import Backend, Candidate, Evaluation, Mode
from workbench.errors import WorkbenchError
from workbench.fleet import Local
from workbench.task import Task

_NO_ROOM = "out of memory"
"""What PyTorch says where a card is full: such an op is judged once more with the card to itself."""

TUNE_POINTS = 8
TUNED = 3
"""How many of an op's structures get tunable points, the fastest first."""


class Lane:
    """A judge that turns from op to op, see `experts.run` for the arguments. Use it from one event loop."""

    def __init__(
        self, *, device: str = "auto", mode: Mode = "full", seed: int | None = None, evaluations: int = EVALUATIONS,
        backends: Sequence[Backend] = ("triton",),
    ) -> None:  # fmt: skip
        self.device, self.mode, self.seed, self.most, self.backends = device, mode, seed, evaluations, tuple(backends)
        self._fleet: Local | None = None

    async def row(self, name: str, reference: str | Path) -> Row:
        """One op, given as its text or its file; what goes wrong is in the row."""
        started = time.perf_counter()
        try:
            row = await self._row(name, captured(name, reference))
        except WorkbenchError as error:
            row = Row(name, error=str(error))
        return replace(row, seconds=round(time.perf_counter() - started, 1))

    async def close(self) -> None:
        """Ends the judge."""
        if self._fleet is not None:
            await self._fleet.close()

    async def _row(self, name: str, task: Task) -> Row:
        from workbench.bench.memory import memory_for
        from workbench.knowledge.experts import why_none

        candidates = list(seeds(task, self.backends))
        if not candidates and self.device == "cpu":
            return Row(name, error=f"no expert fits: {why_none(task)}")
        row = Row(name)
        for alone in (False, True):
            fleet = await self._turned(task)
            with memory_for(task, alone=alone):
                try:
                    row = await self._judged(name, task, fleet, candidates)
                finally:
                    await fleet.rest()
            if _NO_ROOM not in row.error:
                break
        return row

    async def _turned(self, task: Task) -> Local:
        """The judge, which takes seconds to start and no room on the card."""
        if self._fleet is None:
            self._fleet = Local(task, device=self.device, seed=self.seed)
            await self._fleet.start()
        else:
            await self._fleet.turn(task, device=self.device)
        return self._fleet

    async def _judged(self, name: str, task: Task, fleet: Local, candidates: list[Candidate]) -> Row:
        from workbench.knowledge import inductor
        from workbench.knowledge.experts import why_none

        judged: list[tuple[Candidate, Evaluation]] = []

        async def judge(candidate: Candidate, parameters: Mapping[str, Any], how: Mode = "quick") -> Evaluation:
            evaluation = await fleet.evaluate(candidate, parameters, id=f"{candidate.id}.{len(judged)}", mode=how)
            judged.append((candidate, evaluation))
            return evaluation

        begun = time.perf_counter()
        prepared = await fleet.prepare(None)
        prepare_s = round(time.perf_counter() - begun, 1)

        def row(best: Candidate | None = None, final: Evaluation | None = None, error: str = "") -> Row:
            return replace(row_from(name, prepared, best, final, judged), prepare_s=prepare_s, error=error)

        if prepared.inductor:
            own = {"expert": inductor.PROPOSER}
            candidates.insert(0, Candidate("k0", "triton", prepared.inductor, task.candidate_entry, own, proposer=inductor.PROPOSER))
        if not candidates:
            return row(error=f"no expert fits: {why_none(task)}")
        for candidate in candidates[: self.most]:
            await judge(candidate, {})
        order = sorted((pair for pair in judged if pair[1].time_us), key=lambda pair: pair[1].time_us or 0.0)
        first = {kind_of(candidate): (candidate, evaluation) for candidate, evaluation in reversed(order)}  # the fastest of each kind
        rest = [pair for pair in order if all(pair[0] is not candidate for candidate, _ in first.values())]
        for candidate, evaluation in [*first.values(), *rest[: max(0, TUNED - len(first))]]:
            await _tune(candidate, evaluation, judge, min(TUNE_POINTS, self.most - len(judged)))
        passing = [pair for pair in judged if pair[1].time_us]
        if passing:
            best, found = min(passing, key=lambda pair: pair[1].time_us or 0.0)
            final = await judge(best, found.parameters, self.mode) if self.mode == "full" else found
            if final.time_us:
                return row(best, final)
        reason = next((evaluation.reason for _, evaluation in judged if evaluation.reason), "nothing passes")
        return row(error=reason)


def captured(name: str, reference: str | Path) -> Task:
    """The task of a reference, given as its text or its file.

    Raises:
        CaptureError: it does not run, or is no reference.
    """
    from workbench.capture import capture_file
    from workbench.target import detect_target

    with tempfile.TemporaryDirectory() as directory:
        path = reference if isinstance(reference, Path) else Path(directory) / f"{name}.py"
        if isinstance(reference, str):
            path.write_text(reference, encoding="utf-8")
        return capture_file(path, target=detect_target()).task  # only the task stays: the file's own tensors may be large


async def _tune(candidate: Candidate, first: Evaluation, judge: Any, left: int) -> None:
    """Walks one tunable name at a time from the best point, `left` points at most."""
    from workbench.build.tune import read_tune

    space = read_tune(candidate.source)
    best, point = first.time_us, {name: values[0] for name, values in space.items()}
    for name, values in space.items():
        for value in values[1:]:
            if left <= 0:
                return
            left -= 1
            evaluation = await judge(candidate, {**point, name: value})
            if evaluation.time_us and evaluation.time_us < best:
                best, point = evaluation.time_us, {**point, name: value}

"""One candidate, one fresh judge: what accept, verify and the command line call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from workbench.candidate import Candidate, Evaluation, Mode, Verdict
from workbench.events import Prepared
from workbench.fleet.local import Local
from workbench.judge.inspection.sanitized import Sanitized
from workbench.task import Task

T = TypeVar("T")


def judge_once(
    task: Task, candidate: Candidate, parameters: Mapping[str, Any], *, id: str = "k0.0", mode: Mode = "full", device: str = "auto",
    seed: int | None = None, probe: Mapping[str, Any] | None = None, accept_degenerate: bool = True,
    sanitize: bool = False,
) -> tuple[Prepared, Evaluation]:  # fmt: skip
    """Judges one candidate in a fresh judge process, and waits.

    Works inside a running event loop too, as notebooks have one.

    Args:
        sanitize: on a GPU, run one that passes under compute-sanitizer, too: a finding refuses it, and labels say what ran.
        accept_degenerate: False to judge nothing where bad answers can't be told from good ones: then it is `not_judged`.

    Raises:
        CaptureError: the reference does not run, or is not what the live op computes.
        JudgeLostError: the judge can't be started or died twice.
    """

    async def run() -> tuple[Prepared, Evaluation]:
        fleet = Local(task, device=device, seed=seed)
        try:
            prepared = await fleet.prepare(probe)
            if prepared.degenerate and not accept_degenerate:
                return prepared, _not_judged(task, candidate, parameters, id, mode, prepared)
            evaluation = await fleet.evaluate(candidate, parameters, id=id, mode=mode)
            if sanitize and evaluation.judged_by == "gpu" and evaluation.verdict in (Verdict.RIGHT, Verdict.LOWER_PRECISION):
                evaluation = with_sanitized(evaluation, await fleet.sanitize(candidate, parameters))
            return prepared, evaluation
        finally:
            await fleet.close()

    return _complete(run())


def _not_judged(
    task: Task, candidate: Candidate, parameters: Mapping[str, Any], id: str, mode: Mode, prepared: Prepared
) -> Evaluation:  # fmt: skip
    return Evaluation(
        id=id, candidate=candidate.id, task=task.id, verdict=Verdict.NOT_JUDGED, parameters=dict(parameters), mode=mode,
        reason=f"{prepared.warning}. To judge it all the same: --accept-degenerate", environment=prepared.environment,
    )  # fmt: skip


def with_sanitized(evaluation: Evaluation, found: Sanitized) -> Evaluation:
    """The evaluation, with what compute-sanitizer said."""
    labels = {*evaluation.labels, *found.notes}
    if found.ran:
        labels.add(f"sanitized: {', '.join(found.ran)}")
    if found.finding:
        return replace(evaluation, verdict=Verdict.REFUSED, reason=found.finding, labels=tuple(sorted(labels)))
    return replace(evaluation, labels=tuple(sorted(labels)))


def _complete(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in an event loop of its own, in a thread of its own if this one has a loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="judge_once")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]

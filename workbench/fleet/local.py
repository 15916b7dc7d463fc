"""Judges on this machine, as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.candidate import Candidate, Evaluation, Mode, Verdict
from workbench.errors import JudgeLostError
from workbench.events import Prepared
from workbench.fleet import cards
from workbench.fleet.process import JudgeProcess
from workbench.judge.inspection.sanitized import Sanitized
from workbench.records import decode, encode
from workbench.task import Task

_CANCEL_SECONDS = 2.0


class Local:
    """Judges of one task on this machine.

    Use it from one event loop. The judges start, and warm up, with the first thing that is asked.

    Args:
        task: what to compute.
        device: ``auto``, ``cuda`` or ``cpu``.
        judges: how many work side by side. On one GPU they build and check at the same time and take turns in timing; what one has
            measured of the baselines, the others on its card take over. On several GPUs they are spread over all. `beside` says how many
            make sense on one.
        seed: repeatable draws, for tests; marked in every evaluation.
        limits: seconds that stages may take, by their names in `judge.trial.Limits`; the judge's own for the others.
        baselines: of ``eager`` and ``compile``, those that are measured; both by default. Compiling takes up to half a minute an op.

    Example:
        >>> fleet = Local(task)                                        # doctest: +SKIP
        >>> prepared = await fleet.prepare(None)                       # doctest: +SKIP
        >>> evaluation = await fleet.evaluate(candidate, {}, id="k1.0")  # doctest: +SKIP
        >>> await fleet.close()                                        # doctest: +SKIP
    """

    def __init__(
        self, task: Task, *, device: str = "auto", judges: int = 1, seed: int | None = None, limits: Mapping[str, float] | None = None,
        baselines: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.task = task
        self._device, self._number = device, max(1, judges)
        self._options: dict[str, Any] = {"seed": seed, "limits": limits, "baselines": baselines}
        self._idle: asyncio.Queue[JudgeProcess] | None = None
        self._judges: list[JudgeProcess] = []
        self._running: dict[asyncio.Future[None], JudgeProcess] = {}
        self._closed = False
        self._measured: Any = None
        self._card: str | None = None
        self._told: set[JudgeProcess] = set()

    async def start(self) -> None:
        """Starts the judges now, not with the first thing that is asked.

        Raises:
            JudgeLostError: none can be started.
        """
        await self._started()

    async def prepare(self, probe: Mapping[str, Any] | None = None) -> Prepared:
        """Rebuilds the task in a judge and learns what it costs today.

        Raises:
            CaptureError: the reference does not run there, or is not what the live op computes.
            JudgeLostError: no judge can be started.
        """
        idle = await self._started()
        judge = await idle.get()
        try:
            request = {"do": "prepare", "probe": encode(probe) if probe is not None else None}
            try:
                prepared = decode(Prepared, await judge.ask(request))
            except JudgeLostError:
                if judge.alive:
                    raise
                judge = await self._restart(judge)
                prepared = decode(Prepared, await judge.ask(request))
            if self._number > 1:
                self._measured, self._card = await judge.ask({"do": "measured"}), judge.card
                self._told = {judge}
            return prepared
        finally:
            idle.put_nowait(judge)

    async def _ask(self, judge: JudgeProcess, request: Mapping[str, Any]) -> Any:
        """Asks, after it has told a judge that does not know them yet what the baselines take."""
        if self._measured is not None and judge not in self._told and judge.card == self._card:
            await judge.ask({"do": "adopt", "measured": self._measured})
            self._told.add(judge)
        return await judge.ask(request)

    async def sanitize(self, candidate: Candidate, parameters: Mapping[str, Any]) -> Sanitized:
        """What compute-sanitizer says of a candidate; a judge that is lost over it is a note."""
        idle = await self._started()
        judge = await idle.get()
        try:
            request = {"do": "sanitize", "candidate": encode(candidate), "parameters": encode(parameters)}
            return decode(Sanitized, await judge.ask(request))
        except JudgeLostError as error:
            return Sanitized(notes=(f"not sanitized: {error}"[:200],))
        finally:
            idle.put_nowait(judge)

    def adopt(self, measured: Mapping[str, Any]) -> None:
        """Takes what another judge of the same card has measured of the baselines, see `Judge.measured`; no judge measures them then."""
        self._measured, self._card, self._told = measured, cards.of_judge(0, self._device), set()

    async def evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode = "quick") -> Evaluation:
        """The verdict on a candidate. Never raises for what the candidate does, nor for a judge that is lost."""

        def not_judged(reason: str) -> Evaluation:
            return Evaluation(id, candidate.id, self.task.id, Verdict.NOT_JUDGED, reason, parameters=dict(parameters), mode=mode)

        if self._closed:
            return not_judged("cancelled")
        idle = await self._started()
        judge = await idle.get()
        cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running[cancelled] = judge
        request = {"do": "evaluate", "candidate": encode(candidate), "parameters": encode(parameters), "id": id, "mode": mode}
        work: asyncio.Task[Any] | None = None
        lost = ""
        try:
            for _ in range(2):
                work = asyncio.create_task(self._ask(judge, request))
                await asyncio.wait((work, cancelled), return_when=asyncio.FIRST_COMPLETED)
                if cancelled.done():
                    return not_judged("cancelled")
                try:
                    return decode(Evaluation, await work)
                except JudgeLostError as error:
                    lost = str(error)
                    if judge.alive:
                        break  # it lives and says that this can't be judged
                    judge = self._running[cancelled] = await self._restart(judge)
            return not_judged(lost)
        except JudgeLostError as error:
            return not_judged(str(error))
        finally:
            del self._running[cancelled]
            if cancelled.done() and work is not None and not work.done():
                asyncio.get_running_loop().create_task(self._settle(judge, work, idle))
            else:
                idle.put_nowait(judge)

    async def turn(self, task: Task, *, device: str = "auto") -> None:
        """From now on another task. What the judges fork workers from stays, so nothing is imported again. Call it between requests."""
        self.task, self._device, self._measured = task, device, None
        self._told.clear()
        try:
            for judge in self._judges:
                await judge.ask({"do": "turn", "task": encode(task), "device": device})
        except JudgeLostError:
            await asyncio.gather(*(judge.close() for judge in self._judges))
            self._judges.clear()
            self._idle = None

    async def rest(self) -> None:
        """Has the judges give back what they hold of their cards. `turn` comes next. Call it between requests."""
        with contextlib.suppress(JudgeLostError):
            for judge in self._judges:
                await judge.ask({"do": "rest"})

    def cancel(self) -> None:
        """Ends all running judging at once. The fleet can be used again afterwards."""
        for cancelled in list(self._running):
            if not cancelled.done():
                cancelled.set_result(None)

    async def close(self) -> None:
        """Ends the judges and their workers."""
        self._closed = True
        self.cancel()
        await asyncio.sleep(0)
        await asyncio.gather(*(judge.close() for judge in self._judges))
        self._judges.clear()

    async def _started(self) -> asyncio.Queue[JudgeProcess]:
        if self._closed:
            raise JudgeLostError("the fleet is closed")
        if self._idle is None:
            self._idle = asyncio.Queue()
            for number in range(self._number):
                judge = JudgeProcess(
                    self.task, device=self._device, card=cards.of_judge(number, self._device), **self._options
                )  # fmt: skip
                await judge.start()
                self._judges.append(judge)
                self._idle.put_nowait(judge)
        return self._idle

    async def _restart(self, judge: JudgeProcess) -> JudgeProcess:
        await judge.close(at_once=True)
        fresh = JudgeProcess(self.task, device=self._device, card=judge.card, **self._options)
        if judge in self._judges:
            self._judges.remove(judge)
        await fresh.start()
        self._judges.append(fresh)
        return fresh

    async def _settle(self, judge: JudgeProcess, work: asyncio.Task[Any], idle: asyncio.Queue[JudgeProcess]) -> None:
        """After a cancel: the judge has a moment to end what it does, or is replaced."""
        await judge.cancel()
        done, _ = await asyncio.wait((work,), timeout=_CANCEL_SECONDS)
        if not done and not self._closed:
            work.cancel()
            judge = await self._restart(judge)
        if work.done() and not work.cancelled():
            work.exception()  # looked at, so that nobody warns about it
        idle.put_nowait(judge)


def beside() -> int:
    """How many judges make sense on one GPU of this machine: each keeps about three cores busy with building and checking."""
    return max(1, min(6, (os.cpu_count() or 1) // 3))

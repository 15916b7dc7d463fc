"""One judge process for several tasks, one after the other."""

from __future__ import annotations

import asyncio
import os
import signal

from workbench.candidate import Candidate, Verdict
from workbench.fleet import Local
from workbench.task import InputSpec, OutputSpec, Task, Values, Work


def task(name: str, body: str) -> Task:
    source = f"def {name}(x):\n    return {body}\n"
    inputs = (InputSpec("x", (48, 80), "float32", (80, 1), Values("normal", {"mean": 0.0, "std": 1.0})),)
    return Task(name, source, name, inputs, (OutputSpec((48, 80), "float32"),), Work(30720, 7680))


def candidate(name: str, body: str) -> Candidate:
    return Candidate("k1", "triton", f"def {name}(x):\n    return {body}\n", name)


def test_a_fleet_turns_to_another_task_in_the_same_process_and_survives_its_loss():
    async def run() -> None:
        fleet = Local(task("one", "x * 2"), device="host")
        try:
            wrong = await fleet.evaluate(candidate("one", "x * 3"), {}, id="k1.0")
            assert wrong.verdict is Verdict.WRONG and wrong.task == fleet.task.id
            process = fleet._judges[0]
            await fleet.turn(task("two", "x * 3"), device="host")
            assert fleet._judges[0] is process and process.alive
            found = await fleet.evaluate(candidate("two", "x * 2"), {}, id="k1.1")
            assert found.verdict is Verdict.WRONG and found.task == fleet.task.id != wrong.task
            os.kill(process._process.pid, signal.SIGKILL)
            await asyncio.sleep(0.2)
            await fleet.turn(task("three", "x - 1"), device="host")
            found = await fleet.evaluate(candidate("three", "x"), {}, id="k1.3")
            assert found.verdict is Verdict.WRONG, found
        finally:
            await fleet.close()

    asyncio.run(run())

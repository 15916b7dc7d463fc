"""Judges as processes: they start, answer, are cancelled, die and come back, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from workbench import errors
from workbench.candidate import Candidate, Verdict
from workbench.fleet import Local, judge_once
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

SOURCE = "import torch\nprint('the reference prints')\ndef scale(x):\n    return x * 2 + 1\n"
TASK = Task(
    "scale", SOURCE, "scale", (InputSpec("x", (48, 80), "float32", (80, 1), Values("normal", {"mean": 0.0, "std": 1.0})),),
    (OutputSpec((48, 80), "float32"),), Work(30720, 7680),
)  # fmt: skip
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(y + i, tl.load(x + i, mask=m) * 2 + 1, mask=m)


def scale(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
    return y
"""
GOOD = Candidate("k1", "triton", KERNEL, "scale")
SLOW = Candidate("k2", "triton", KERNEL.replace("    y = torch", "    while True: pass\n    y = torch"), "scale")


def children(pid: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found |= {int(entry.name)} | children(int(entry.name))
    return found


def gone(pids: set[int], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(_alive(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def test_a_fleet_lives_through_all_that_happens_to_it():
    """One fleet for the whole story, since each judge costs a few seconds of imports."""

    async def story():
        fleet = Local(TASK, device="cpu", seed=3)
        prepared = await fleet.prepare(None)
        assert prepared.floor_us > 0 and prepared.device.startswith("no GPU")

        first = await fleet.evaluate(GOOD, {}, id="k1.0")
        again = await fleet.evaluate(GOOD, {}, id="k1.0")
        assert first.verdict is Verdict.RIGHT, first
        assert (first.error_ratio, first.timing, first.seed) == (again.error_ratio, again.timing, 3)

        # Cancelled at once, and the fleet goes on.
        running = asyncio.create_task(fleet.evaluate(SLOW, {}, id="k2.0"))
        await asyncio.sleep(1.5)
        begun = time.monotonic()
        fleet.cancel()
        cancelled = await running
        assert time.monotonic() - begun < 0.5
        assert cancelled.verdict is Verdict.NOT_JUDGED and cancelled.reason == "cancelled"
        assert (await fleet.evaluate(GOOD, {}, id="k1.1")).verdict is Verdict.RIGHT

        # Killed in the middle: restarted once, and the evaluation answered by the new one.
        judge = fleet._judges[0]._process.pid
        workers = children(judge)
        assert workers
        running = asyncio.create_task(fleet.evaluate(GOOD, {}, id="k1.2"))
        await asyncio.sleep(0.05)
        os.kill(judge, signal.SIGKILL)
        assert (await running).verdict is Verdict.RIGHT
        assert gone(workers), "workers outlived their judge"

        left = children(fleet._judges[0]._process.pid) | {fleet._judges[0]._process.pid}
        await fleet.close()
        assert gone(left), "processes outlived the fleet"
        closed = await fleet.evaluate(GOOD, {}, id="k1.3")
        assert closed.verdict is Verdict.NOT_JUDGED

    asyncio.run(story())


def test_a_reference_that_does_not_run_is_an_error_in_one_line():
    broken = Task("scale", "import torch\nraise RuntimeError('no such thing')\n", "scale", TASK.inputs, TASK.outputs, TASK.work)

    async def story():
        fleet = Local(broken, device="cpu")
        try:
            with pytest.raises(errors.CaptureError, match="no such thing"):
                await fleet.prepare(None)
        finally:
            await fleet.close()

    asyncio.run(story())


def test_judge_once_compares_with_the_live_op():
    async def inside_a_loop():
        probe = {"seed": 5, "outputs": [{"shape": [48, 80], "dtype": "float32", "sum": 1.0, "abs_sum": 1.0, "sample": []}]}
        with pytest.raises(errors.CaptureError, match="does not compute what the cell does"):
            judge_once(TASK, GOOD, {}, device="cpu", probe=probe)

    asyncio.run(inside_a_loop())

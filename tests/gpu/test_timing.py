"""On a GPU: what tries to look faster than it is, and what breaks, ends in a verdict, and nobody else notices."""

from __future__ import annotations

import textwrap

import pytest
import torch

from workbench.candidate import Candidate, Verdict
from workbench.judge.timing import statistics
from workbench.records import encode
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

REFERENCE = "import torch\ndef scale(x):\n    return x * 2 + 1\n"
HONEST = """
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def twice(x, y, n, BLOCK: tl.constexpr):
        place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + place, tl.load(x + place, mask=place < n) * 2 + 1, mask=place < n)

    def scale(x):
        x = x.contiguous()
        y = torch.empty_like(x)
        twice[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048)
        return y
"""
BUSY = """
    import torch
    def work(x, y):
        for _ in range(30):
            torch.mul(x, 2, out=y)
        y.add_(1)
"""
"""What a slow candidate does: thirty times the traffic."""


@pytest.fixture(scope="module")
def judge():
    from workbench.judge.judge import Judge
    from workbench.judge.trial import Limits
    from workbench.target import detect_target

    shape = (4096, 4096)
    x = InputSpec("x", shape, "float32", (4096, 1), Values("normal", {"mean": 0.0, "std": 1.0}))
    output = OutputSpec(shape, "float32")
    task = Task("scale", REFERENCE, "scale", (x,), (output,), Work(x.nbytes + output.nbytes, x.nbytes // 2), target=detect_target())
    made = Judge(task, device="cuda", limits=Limits(load=30, build=60, call=15, traffic=30, timing=10))
    clock = made.context.clock()
    eager = clock._baseline("eager")
    made.adopt({"times": clock._measured, "baselines": [encode(eager)]})
    yield made
    made.close()


def judged(judge, source):
    return judge.evaluate(Candidate("k1", "triton", textwrap.dedent(source), "scale"), {}, id="k1.0")


def test_an_honest_kernel_is_right_and_fast(judge):
    found = judged(judge, HONEST)
    assert found.verdict is Verdict.RIGHT, found.reason
    assert found.timing is not None and statistics.faster(found.speedup), found.speedup


def test_a_copy_of_the_baseline_is_not_called_faster(judge):
    found = judged(judge, REFERENCE)
    assert found.verdict is Verdict.RIGHT and not statistics.faster(found.speedup), found


@pytest.mark.parametrize("waits", [True, False])
def test_a_stream_that_is_not_joined_is_seen(judge, waits):
    wait = "side.wait_stream(torch.cuda.current_stream())" if waits else "pass"
    source = (
        BUSY
        + f"""
    side = None
    calls = [0]
    def scale(x):
        global side
        calls[0] += 1
        y = torch.empty_like(x)
        if calls[0] < 12:
            work(x, y)
            return y
        side = side or torch.cuda.Stream()
        {wait}
        with torch.cuda.stream(side):
            work(x, y)
        return y
    """
    )
    found = judged(judge, source)
    assert found.verdict in (Verdict.TIME_NOT_CONFIRMED, Verdict.WRONG), found


def test_work_that_a_thread_does_afterwards_is_seen(judge):
    source = (
        BUSY
        + """
    import threading
    calls = [0]
    def scale(x):
        calls[0] += 1
        y = torch.zeros_like(x)
        if calls[0] < 12:
            work(x, y)
        else:
            threading.Timer(0.002, work, (x, y)).start()
        return y
    """
    )
    found = judged(judge, source)
    assert found.verdict in (Verdict.TIME_NOT_CONFIRMED, Verdict.WRONG), found


def test_saying_done_too_early_is_seen(judge):
    source = (
        BUSY
        + """
    hidden = __import__("gc")
    calls = [0]
    def scale(x):
        calls[0] += 1
        y = torch.empty_like(x)
        if calls[0] == 12:
            for thing in hidden.get_objects():
                if type(thing).__name__ == "EventStopwatch":
                    setattr(thing, "read", lambda: 60.0)
        work(x, y)
        return y
    """
    )
    found = judged(judge, source)
    assert found.verdict in (Verdict.TIME_NOT_CONFIRMED, Verdict.REFUSED), found


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("import os\n    os._exit(0)", Verdict.CRASHED),
        ("torch.cuda._sleep(1 << 45)\n    return x * 2 + 1", Verdict.TIMED_OUT),
        ("y = torch.empty_like(x)\n    y.view(-1)[torch.full((9,), 1 << 40, device=x.device)] = 1.0\n    return y", Verdict.CRASHED),
    ],
)
def test_faults_stay_in_their_process(judge, body, verdict):
    own = torch.arange(1000, device="cuda")
    found = judged(judge, f"import torch\ndef scale(x):\n    {body}\n")
    assert found.verdict is verdict, found
    assert torch.equal(own.cpu(), torch.arange(1000))
    assert judged(judge, HONEST).verdict is Verdict.RIGHT

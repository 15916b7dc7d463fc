"""Tasks and candidates for the judge's tests, and one judge for many of them."""

from __future__ import annotations

import pytest

from workbench.candidate import Candidate
from workbench.task import InputSpec, OutputSpec, Task, Values, Work


def spec(name, shape, dtype="float32", kind="normal", **args):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return InputSpec(name, tuple(shape), dtype, tuple(reversed(strides)), Values(kind, args or {"mean": 0.0, "std": 1.0}))


def make_task(name, reference, inputs, outputs, *, flops=1000, **more):
    outs = tuple(OutputSpec(tuple(shape), dtype) for shape, dtype in outputs)
    nbytes = sum(i.nbytes for i in inputs) + sum(o.nbytes for o in outs)
    return Task(name, reference, name, tuple(inputs), outs, Work(nbytes, flops), **more)


def candidate(source, entry, id="k1", backend="triton"):
    return Candidate(id, backend, source, entry)


@pytest.fixture(scope="session")
def scale_task():
    """Doubles and adds one: small enough that every fault shows at once."""
    source = "import torch\ndef scale(x):\n    return x * 2 + 1\n"
    return make_task("scale", source, [spec("x", (48, 80))], [((48, 80), "float32")])


@pytest.fixture(scope="session")
def nursery():
    """What all judges of a test run fork from."""
    from workbench.judge.isolation import sandbox
    from workbench.judge.isolation.pool import Nursery

    made = Nursery(sandbox.detect())
    yield made
    made.close()


@pytest.fixture(scope="session")
def host_judge(scale_task, nursery):
    """The way of the GPU with PyTorch on the CPU: every fault of a candidate can be shown without Triton."""
    from workbench.judge.judge import Judge
    from workbench.judge.trial import Limits

    judge = Judge(
        scale_task, device="host", limits=Limits(load=30, build=30, call=10, traffic=30, timing=10), memory_cap=2 << 30, nursery=nursery
    )
    yield judge
    judge.close()

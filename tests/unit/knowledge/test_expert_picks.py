"""Picked elements, such as a loss's target: loaded alone, so that the row is read once, and right at the edges and for odd values."""

from __future__ import annotations

import itertools
import re

import pytest
import torch
import torch.nn.functional as F
from expert_cases import BF16, cross_entropy
from expert_lab import run_interpreted, trace

from workbench.build.tune import defaults
from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.target import get_target


def mean_loss(x, t):
    return F.cross_entropy(x, t)


def sum_loss(x, t):
    return F.cross_entropy(x, t, reduction="sum")


def each_loss(x, t):
    return F.cross_entropy(x, t, reduction="none")


def ignore_first(x, t):
    return F.cross_entropy(x, t, ignore_index=0)


def smoothed(x, t):
    return F.cross_entropy(x, t, label_smoothing=0.1)


def weighted(x, t, w):
    return F.cross_entropy(x, t, weight=w)


def weighted_each(x, t, w):
    return F.cross_entropy(x * 2, t, weight=w, reduction="none")


def gathered(x, t):
    return -torch.log_softmax(x, -1).gather(1, t[:, None]).squeeze(1)


OPS = (mean_loss, sum_loss, each_loss, ignore_first, smoothed, weighted, weighted_each, gathered)


def inputs_of(op, kind, dtype, rows=9, classes=1100):
    """Logits, targets at both edges and in between, and weights where the op takes them."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn((rows, classes), generator=generator)
    target = torch.randint(0, classes, (rows,), generator=generator)
    target[0], target[1], target[2] = 0, classes - 1, classes // 2
    if kind == "masked":
        x[:, 5:500] = -float("inf")
        x[4, :1000] = -float("inf")
        target = target.clamp(min=1000)
    elif kind == "finite minimum":
        x[3] = torch.finfo(dtype).min
    elif kind == "large":
        x = x * 64 + 1000
    if op is not gathered:
        target[7] = 0 if op is ignore_first else -100
    made = [x.to(dtype), target]
    return [*made, torch.rand(classes, generator=generator).to(dtype)] if op.__code__.co_argcount == 3 else made


KINDS = ("plain", "masked", "finite minimum", "large")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Every way through a row, for every op, in one process."""
    jobs, known = [], []
    for op, kind in itertools.product(OPS, KINDS):
        if op not in (each_loss, weighted) and kind != "plain":
            continue
        for dtype in (torch.float32, BF16) if op in (mean_loss, weighted) and kind == "plain" else (torch.float32,):
            inputs = inputs_of(op, kind, dtype)
            task = trace(op, *inputs, name=op.__name__)
            space = experts.choices("cross_entropy", task)
            ways = [{"passes": "row"}, *({"passes": "loop", "online": how} for how in space["online"])]
            ways += [{"passes": "split", "online": how} for how in space["online"] if op is not smoothed]
            for way in ways:
                source = experts.write("cross_entropy", task, way)
                small = {"BLOCK": 256, "DEPTH": 2, "SPLIT": 4, "NUM_WARPS": 2}
                parameters = {name: small.get(name, value) for name, value in defaults(source).items()}
                jobs.append({"source": source, "entry": op.__name__, "inputs": inputs, "parameters": parameters})
                known.append((op, kind, dtype, way, inputs))
    return list(zip(known, run_interpreted(jobs, tmp_path_factory.mktemp("picks")), strict=True))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_losses_are_those_of_the_reference(results, op):
    runs = [run for run in results if run[0][0] is op]
    assert {way["passes"] for (_, _, _, way, _), _ in runs} >= {"row", "loop"}
    for (_, kind, dtype, way, inputs), output in runs:
        assert not isinstance(output, str), f"{kind} {way}: {output}"
        exact = op(*[x.double() if x.is_floating_point() else x for x in inputs])
        tolerance = {"rtol": 2e-6, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 5e-3, "atol": 5e-3}
        torch.testing.assert_close(output[0].double(), exact, **tolerance, msg=lambda text, k=kind, w=way: f"{k} {w}: {text}")


def meta(*shape, dtype=BF16):
    return torch.empty(shape, dtype=dtype, device="meta")


@pytest.mark.parametrize("passes", ["row", "loop"])
@pytest.mark.parametrize("op", [mean_loss, weighted, gathered], ids=lambda op: op.__name__)
def test_the_logits_are_read_once_and_the_target_loaded_alone(op, passes, tmp_path):
    inputs = [meta(4096, 32000), meta(4096, dtype=torch.int64), *([meta(32000)] if op is weighted else [])]
    task = trace(op, *inputs, name=op.__name__)
    source = experts.write("cross_entropy", task, {"passes": passes})
    main = source.split("@triton.jit")[1]
    assert len(re.findall(r"tl\.load\(x_ptr \+ row \* N \+ cols", main)) == 1
    assert len(re.findall(r"tl\.load\(x_ptr \+ row \* N \+ t,", main)) == 1
    assert main.count("for start in") == (passes == "loop") and "cols == t" not in main
    recording = record(source, task.candidate_entry, {}, task.inputs, get_target("cuda:90"), directory=tmp_path)
    assert recording.error is None and len(recording.launches) == (1 if op is gathered else 2)
    assert recording.launches[0].resources.vector_bytes == 16 and recording.launches[0].resources.spill_bytes == 0


def test_a_deep_block_meets_other_threads_at_the_end_alone(tmp_path, monkeypatch):
    """No barrier inside the loop: each thread has a maximum of its own."""
    from workbench.judge.recording import recorder

    built = []
    compile_launch = recorder.compile_launch
    monkeypatch.setattr(recorder, "compile_launch", lambda *args, **options: built.append(compile_launch(*args, **options)) or built[-1])
    task = trace(cross_entropy, meta(4096, 32000), meta(4096, dtype=torch.int64), name="cross_entropy")
    source = experts.write("cross_entropy", task, {})
    record(source, task.candidate_entry, {}, task.inputs, get_target("cuda:90"), directory=tmp_path)
    ptx = built[0].artifacts["ptx"]
    loop = ptx[ptx.index("Inner Loop Header") : ptx.index("crit_edge")]
    assert "bar.sync" not in loop and "shfl" not in loop
    assert loop.count("ld.global") == 4 and "ex2.approx.ftz.f32" in loop


def test_what_is_no_pick_stays_a_sum():
    def both(x, t):
        return torch.log_softmax(x, -1).gather(1, t), x.sum(-1)

    task = trace(both, torch.randn(4, 9), torch.zeros(4, 2, dtype=torch.int64), name="both")
    assert experts.match(task) == ()
    assert "a gather of several elements a row" in experts.why_none(task)

"""Rows that are read through a ring: played block for block and thread for thread on the CPU, and compiled for the card."""

from __future__ import annotations

import types

import pytest
import torch
import torch.nn.functional as F
from cuda_on_host import run
from expert_lab import trace

from workbench.build.tune import read_tune
from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts import cuda_ring
from workbench.target import TARGETS

BF16 = torch.bfloat16


def softmax(x):
    return torch.softmax(x, 1)


def layernorm(x, w, b):
    return F.layer_norm(x, x.shape[1:], w, b)


def rmsnorm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def add_log_softmax(x, y):
    return F.log_softmax(x + y.float(), -1)


def with_statistics(x):
    return x / x.amax(-1, keepdim=True), x.mean(-1)


def masked(x):
    return torch.softmax(x.masked_fill(x < 1.5, float("-inf")), -1)


def cross_entropy(x, t):
    return F.cross_entropy(x, t)


def log_sum(x):
    return torch.logsumexp(x, -1)


def extremes(x):
    return x.amax(-1), x.amin(-1), x.sum(-1)


def l1(x):
    return x / x.abs().mean(1, keepdim=True)


OPS = {
    "softmax": (softmax, ((9, 1040),), BF16),
    "layernorm": (layernorm, ((5, 2, 5, 104), (2, 5, 104), (2, 5, 104)), torch.float32),
    "rmsnorm": (rmsnorm, ((9, 1032), (1032,)), BF16),
    "add_log_softmax": (add_log_softmax, ((8, 1000), (8, 1000)), torch.float32),
    "with_statistics": (with_statistics, ((8, 640),), torch.float32),
    "masked": (masked, ((6, 1000),), torch.float32),
    "cross_entropy": (cross_entropy, ((11, 1288),), BF16),
    "log_sum": (log_sum, ((8, 4104),), torch.float32),
    "extremes": (extremes, ((13, 1024),), torch.float32),
    "l1": (l1, ((8, 1003),), torch.float32),
}


def arguments_of(name):
    torch.manual_seed(0)
    _, shapes, dtype = OPS[name]
    made = tuple(torch.randn(shape).to(dtype) for shape in shapes)
    if name == "cross_entropy":
        targets = torch.randint(0, shapes[0][1], (shapes[0][0],))
        targets[3] = -100  # left out of the mean
        made += (targets,)
    return made


@pytest.fixture
def small_card(monkeypatch):
    """A card of three multiprocessors; no row is too short, and none are too few."""
    monkeypatch.setattr(cuda_ring, "LEAST", 0)
    monkeypatch.setattr(cuda_ring, "ROWS_EACH", 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(multi_processor_count=3))


# Rings that run ahead over several rows of a block; a warp alone; a ring that is shorter than a row, where that will do.
POINTS = ({"WARPS": 2, "STEPS": 1, "RESIDENT": 2}, {"WARPS": 1, "STEPS": 2, "RESIDENT": 2}, {"WARPS": 2, "STEPS": 1, "RESIDENT": 64})


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ("softmax", "cross_entropy", "l1") else pytest.mark.full) for n in OPS])
def test_it_computes_what_pytorch_does(name, small_card, tmp_path, monkeypatch):
    op, arguments = OPS[name][0], arguments_of(name)
    task = trace(op, *arguments, name=name, target="cuda:90")
    truth = op(*[argument.double() if argument.is_floating_point() else argument for argument in arguments])
    usual = op(*arguments)
    ways = experts.choices("cuda_ring", task).get("online", ())
    assert bool(ways) == (name in ("softmax", "add_log_softmax", "masked", "cross_entropy", "log_sum"))
    sources = [experts.write("cuda_ring", task, {"online": way}) for way in ways] or [experts.write("cuda_ring", task, {})]
    ran = 0
    for number, point in enumerate(POINTS):
        source = sources[number % len(sources)]
        try:
            found, launches = run(source, task.candidate_entry, point, arguments, tmp_path, monkeypatch)
        except NotImplementedError:
            assert point["RESIDENT"] == 64  # a row that so little memory does not hold
            continue
        ran += 1
        assert len(launches) == 1
        for got, want, plain in zip(*map(_flat, (found, truth, usual)), strict=True):
            assert got.dtype == plain.dtype and got.shape == plain.shape
            rounding = {torch.float32: 2.0**-20, BF16: 2.0**-6}[got.dtype]
            torch.testing.assert_close(got.double(), want, rtol=rounding, atol=rounding * max(1.0, want.abs().max().item() / 4))
    assert ran >= 2


def test_nan_comes_through_as_in_pytorch(small_card, tmp_path, monkeypatch):
    x = torch.randn(4, 1024)
    x[1, 77] = float("nan")
    task = trace(extremes, x, name="extremes", target="cuda:90")
    found, _ = run(experts.write("cuda_ring", task, {}), task.candidate_entry, POINTS[0], (x,), tmp_path, monkeypatch)
    for got, want in zip(found, extremes(x), strict=True):
        assert torch.equal(got.isnan(), want.isnan()) and got.isnan().sum() == 1


LARGE = {
    "softmax": (softmax, ((4096, 8192),), BF16),
    "rmsnorm": (rmsnorm, ((4096, 8192), (8192,)), BF16),
    "log_sum": (log_sum, ((4096, 32000),), BF16),
    "cross_entropy": (cross_entropy, ((4096, 32000), (4096,)), BF16),
    "extremes": (extremes, ((16384, 8192),), torch.float32),
    "long": (softmax, ((4096, 32768),), BF16),
}


@pytest.mark.parametrize("name", LARGE)
def test_every_point_fits_the_card_without_spilling(name, tmp_path):
    op, shapes, dtype = LARGE[name]
    dtypes = (dtype, torch.int64) if op is cross_entropy else (dtype,) * len(shapes)
    task = trace(op, *[torch.empty(s, dtype=d, device="meta") for s, d in zip(shapes, dtypes, strict=True)], name=name, target="cuda:90")
    assert "cuda_ring" in [fit.expert for fit in experts.match(task, ("triton", "cuda"))]
    source = experts.write("cuda_ring", task, {})
    space = read_tune(source)
    default = {key: values[0] for key, values in space.items()}
    points = [default, *({**default, key: value} for key, values in space.items() for value in values[1:])]
    built = 0
    for point in points:
        found = record(source, task.candidate_entry, point, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
        if found.error is not None:
            assert point != default and "shared memory of a block" in found.error.message, (point, found.error)
            continue
        built += 1
        used = found.launches[0].resources
        assert used.spill_bytes == 0 and used.vector_bytes == 16, point
        blocks = point["RESIDENT"] // point["WARPS"]
        assert blocks * (used.shared_bytes + 1024) <= 228 << 10 and blocks * point["WARPS"] * 32 * used.registers <= 65536, point
        assert used.grid[0] == min(shapes[0][0], blocks * TARGETS["cuda:90"].multiprocessors)
    assert built >= 2


def test_what_it_is_not_made_for_is_refused():
    for op, shape, why, target in (
        (softmax, (4096, 512), "too short", "cuda:90"), (softmax, (64, 8192), "too few rows", "cuda:90"),
        (softmax, (66, 65537), "too few rows", "cuda:90"), (softmax, (4096, 393216), "longer than a block", "cuda:90"),
        (lambda x: x.cumsum(-1), (4096, 8192), "a running sum", "cuda:90"), (softmax, (4096, 8192), "sm_90", "cuda:80"),
    ):  # fmt: skip
        task = trace(op, torch.empty(shape, device="meta"), name="op", target=target)
        with pytest.raises(UnsupportedError, match=why):
            experts.write("cuda_ring", task, {})


def _flat(value):
    return value if isinstance(value, tuple) else (value,)

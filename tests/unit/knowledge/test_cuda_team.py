"""Rows that a team of blocks holds: played block for block and thread for thread on the CPU, and compiled for the card."""

from __future__ import annotations

import types

import pytest
import torch
import torch.nn.functional as F
from cuda_on_host import run
from expert_lab import trace

from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts import cuda_team
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


def whole(x):
    return x - x.mean()


def masked(x):
    return torch.softmax(x.masked_fill(x < 1.5, float("-inf")), -1)


def l1(x):
    return x / x.abs().mean(1, keepdim=True)


OPS = {
    "softmax": (softmax, ((5, 2056),), torch.float32),
    "layernorm": (layernorm, ((3, 2, 5, 104), (2, 5, 104), (2, 5, 104)), torch.float32),
    "rmsnorm": (rmsnorm, ((5, 1032), (1032,)), BF16),
    "add_log_softmax": (add_log_softmax, ((4, 1000), (4, 1000)), torch.float32),
    "with_statistics": (with_statistics, ((4, 640),), torch.float32),
    "whole": (whole, ((8, 260),), torch.float32),
    "masked": (masked, ((3, 1000),), torch.float32),
    "l1": (l1, ((4, 1003),), torch.float32),
    "ragged_sum": (add_log_softmax, ((8, 645), (8, 645)), torch.float32),
    "ragged_weights": (rmsnorm, ((8, 517), (517,)), BF16),
}


def arguments_of(name):
    torch.manual_seed(0)
    _, shapes, dtype = OPS[name]
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


@pytest.fixture
def small_card(monkeypatch):
    """A card of three multiprocessors, and no row too short."""
    monkeypatch.setattr(cuda_team, "LEAST", 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(multi_processor_count=3))


# A ring that runs ahead, over several rows of a team; one block alone; a ring of just one row.
POINTS = ({"TEAM": 2, "EACH": 2, "ROOM": 227}, {"TEAM": 1, "EACH": 16, "ROOM": 227}, {"TEAM": 2, "EACH": 16, "ROOM": 8})


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ("softmax", "ragged_sum") else pytest.mark.full) for n in OPS])
def test_it_computes_what_pytorch_does(name, small_card, tmp_path, monkeypatch):
    op, arguments = OPS[name][0], arguments_of(name)
    task = trace(op, *arguments, name=name, target="cuda:90")
    truth, usual = op(*[argument.double() for argument in arguments]), op(*arguments)
    ways = experts.choices("cuda_team", task).get("online", ())
    assert bool(ways) == (name in ("softmax", "add_log_softmax", "masked", "ragged_sum"))
    sources = [experts.write("cuda_team", task, {"online": way}) for way in ways] or [experts.write("cuda_team", task, {})]
    ran = 0
    for number, point in enumerate(POINTS):
        source = sources[(number + 1) % len(sources)]
        try:
            found, launches = run(source, task.candidate_entry, {"WARPS": 2, "STEPS": 1, **point}, arguments, tmp_path, monkeypatch)
        except NotImplementedError:
            assert point["ROOM"] < 227  # a row that so little memory does not hold
            continue
        ran += 1
        assert len(launches) == 1
        for got, want, plain in zip(*map(_flat, (found, truth, usual)), strict=True):
            assert got.dtype == plain.dtype and got.shape == plain.shape
            rounding = {torch.float32: 2.0**-20, BF16: 2.0**-6}[got.dtype]
            torch.testing.assert_close(got.double(), want, rtol=rounding, atol=rounding * max(1.0, want.abs().max().item() / 4))
    assert ran >= 2


LONG = {
    "softmax": (softmax, ((4096, 393216),), torch.float32, 8),
    "rmsnorm": (rmsnorm, ((1024, 131072), (131072,)), BF16, 4),
    "l1": (l1, ((32768, 65535),), torch.float32, 4),
}


def long_task(name, target="cuda:90"):
    op, shapes, dtype, _ = LONG[name]
    return trace(op, *[torch.empty(shape, dtype=dtype, device="meta") for shape in shapes], name=name, target=target)


@pytest.mark.parametrize("name", LONG)
def test_it_fits_the_card_it_is_made_for_and_comes_first(name, tmp_path):
    blocks = LONG[name][-1]
    task = long_task(name)
    assert experts.match(task, ("triton", "cuda"))[0].expert == "cuda_team"
    found = record(experts.write("cuda_team", task, {}), task.candidate_entry, {}, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
    assert found.error is None
    (launch,) = [launch for launch in found.launches if launch.resources.backend == "cuda"]
    used = launch.resources
    assert used.spill_bytes == 0 and used.vector_bytes == 16 and used.shared_bytes <= TARGETS["cuda:90"].block_shared_bytes
    assert used.shared_bytes >= 90 << 10, "what is on its way to a multiprocessor"
    assert used.grid[0] % blocks == 0


def test_what_it_is_not_made_for_is_refused():
    assert not any(fit.expert == "cuda_team" for fit in experts.match(long_task("softmax", "cuda:80"), ("triton", "cuda")))
    for op, shape, why in (
        (softmax, (64, 8192), "short enough"), (softmax, (66, 65537), "16-byte words"), (softmax, (2, 1 << 20), "longer than a cluster"),
        (lambda x: x.sum(-1), (64, 131072), "as a whole"), (lambda x: x.cumsum(-1), (64, 131072), "as a whole"),
    ):  # fmt: skip
        task = trace(op, torch.empty(shape, device="meta"), name="op", target="cuda:90")
        with pytest.raises(UnsupportedError, match=why):
            experts.write("cuda_team", task, {})


def _flat(value):
    return value if isinstance(value, tuple) else (value,)

"""Few and long rows in CUDA C++, two kernels: played thread for thread on the CPU, and compiled for the card."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from cuda_on_host import run
from expert_lab import trace

from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts import cuda_split
from workbench.target import TARGETS

BF16 = torch.bfloat16


def layernorm(x, w, b):
    return F.layer_norm(x, x.shape[1:], w, b)


def softmax(x):
    return torch.softmax(x, 1)


def log_softmax(x, y):
    return F.log_softmax(x * 2 + y, -1)


def masked_softmax(x):
    return torch.softmax(x.masked_fill(x < 0.5, float("-inf")), -1)


def with_statistics(x):
    return x / x.amax(-1, keepdim=True), x.mean(-1), x.var(-1)


def square_error(x, y):
    return F.mse_loss(x, y)


def whole(x):
    return x - x.mean()


OPS = {
    "layernorm": (layernorm, ((3, 2, 5, 104), (2, 5, 104), (2, 5, 104)), torch.float32, 2),
    "softmax": (softmax, ((3, 2056),), BF16, 2),
    "log_softmax": (log_softmax, ((2, 1001), (1001,)), torch.float32, 2),
    "masked_softmax": (masked_softmax, ((2, 1500),), torch.float32, 2),
    "with_statistics": (with_statistics, ((4, 900),), torch.float32, 2),
    "square_error": (square_error, ((7, 260), (7, 260)), torch.float32, 2),
    "whole": (whole, ((8, 260),), torch.float32, 2),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "layernorm" else pytest.mark.full) for n in OPS])
def test_it_computes_what_pytorch_does(name, tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_split, "LEAST", 0)
    op, shapes, dtype, kernels = OPS[name]
    torch.manual_seed(0)
    arguments = tuple(torch.randn(shape).to(dtype) for shape in shapes)
    task = trace(op, *arguments, name=name, target="cuda:90")
    source = experts.write("cuda_split", task, {})
    usual = _flat(op(*arguments))
    if name == "masked_softmax":
        arguments[0][1] = 0.0  # a row of nothing but minus infinity, and a tile of it in the other
        arguments[0][0, :600] = 0.0
    truth = _flat(op(*[argument.double() for argument in arguments]))
    points = ({"ROUNDS": 2, "FAST": 1}, {"ROUNDS": 3, "FAST": 0}) if '"ROUNDS": [' in source else ({},)
    for point in points if name == "with_statistics" else points[:1]:  # g++ takes seconds for each
        found, launches = run(source, task.candidate_entry, {"LANES": 64, "ITEMS": 2, **point}, arguments, tmp_path, monkeypatch)
        assert len(launches) == kernels
        for got, want, plain in zip(_flat(found), truth, usual, strict=True):
            assert got.dtype == plain.dtype and got.shape == plain.shape
            rounding = {torch.float32: 2.0**-20, BF16: 2.0**-6}[got.dtype]
            largest = want.nan_to_num().abs().max().item()
            torch.testing.assert_close(
                got.double(), want, rtol=rounding, atol=rounding * max(1.0, largest / 4), equal_nan=True
            )  # fmt: skip


def large(op, *shapes):
    return trace(op, *[torch.empty(shape, device="meta") for shape in shapes], name=op.__name__, target="cuda:90")


@pytest.mark.parametrize("op", [layernorm, square_error])
def test_it_fills_the_card(op, tmp_path):
    shapes = ((16, 64, 256, 256), (64, 256, 256), (64, 256, 256)) if op is layernorm else ((8192, 8192), (8192, 8192))
    task = large(op, *shapes)
    assert experts.match(task, ("triton", "cuda"))[0].expert == "cuda_split"
    found = record(experts.write("cuda_split", task, {}), task.candidate_entry, {}, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
    assert found.error is None
    first, second = [launch.resources for launch in found.launches if launch.resources.backend == "cuda"]
    assert first.spill_bytes == second.spill_bytes == 0 and first.vector_bytes == 16
    assert first.occupancy >= 0.75 and first.waves > 4
    assert second.occupancy >= 0.5 and (second.waves > 2 or op is square_error)


def test_what_it_is_not_made_for_is_refused():
    for op, shape, why in (
        (softmax, (4096, 32768), "enough to fill the card"), (softmax, (4, 4096), "short"),
        (lambda x: x.cumsum(-1), (4, 65536), "running sum"), (lambda x: x.argmax(-1), (4, 65536), "argmax along a row"),
        (whole, (1 << 14, 1 << 14), "shares of their tiles"),
    ):  # fmt: skip
        task = trace(op, torch.empty(shape, device="meta"), name="op", target="cuda:90")
        with pytest.raises(UnsupportedError, match=why):
            experts.write("cuda_split", task, {})


def _flat(value):
    return value if isinstance(value, tuple) else (value,)

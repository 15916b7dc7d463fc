"""Extremes of half types, two by one instruction, and exponentials below them: rows that hold anything, against PyTorch."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch
from cuda_on_host import run
from expert_lab import trace

from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.target import TARGETS

BF16, HALF, FP32 = torch.bfloat16, torch.float16, torch.float32
INF, NAN = math.inf, math.nan


def extremes(x):
    return x.amax(-1), x.amin(-1), x.sum(-1)


def softmax(x):
    return torch.softmax(x, -1)


def logsumexp(x):
    return torch.logsumexp(x, -1)


def log_softmax(x):
    return torch.log_softmax(x, -1)


def odd_rows(columns, dtype):
    """Rows of what a row can hold: the usual, NaN, infinities, fillings, offsets, one value alone."""
    torch.manual_seed(0)
    x = torch.randn(14, columns).to(dtype)
    x[1, columns - 1] = NAN
    x[2, 0], x[2, columns - 1] = INF, -INF
    x[3] = -INF
    x[4, 3:] = -INF
    x[5] = torch.finfo(dtype).min
    x[6, 5:] = torch.finfo(dtype).min
    x[7] = torch.finfo(dtype).max
    x[8] += 1000
    x[9] -= 1000
    x[10] = 31.75
    x[11] *= 10
    x[12] = -x[12].abs() - 3  # what lies beyond a row's end must not count as zero
    x[13] = x[13].abs() + 3
    return x


CASES = {
    "extremes bf16": (extremes, 1032, BF16), "extremes half, ragged": (extremes, 1027, HALF), "extremes half": (extremes, 264, HALF),
    "softmax bf16": (softmax, 1288, BF16), "softmax half": (softmax, 1034, HALF), "softmax float32": (softmax, 1027, FP32),
    "softmax bf16, short": (softmax, 259, BF16), "softmax float32, short": (softmax, 193, FP32),
    "logsumexp bf16": (logsumexp, 1288, BF16), "logsumexp float32": (logsumexp, 1028, FP32),
    "log_softmax float32": (log_softmax, 1028, FP32),
}  # fmt: skip
QUICK = ("extremes bf16", "softmax bf16", "logsumexp float32")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in CASES])
def test_rows_of_anything_are_as_in_pytorch(name, tmp_path, monkeypatch):
    op, columns, dtype = CASES[name]
    x = odd_rows(columns, dtype)
    if op is logsumexp:
        x[2:4] = 1.0  # the experts have NaN of rows whose maximum is infinite, where PyTorch has that
    task = trace(op, x, name=op.__name__)
    source = experts.write("cuda_rows", task, {})
    assert ("Extreme<" in source) == (dtype != FP32) and ("exp_below(up" in source) == (op is not extremes)
    point = {"ROWS": 2} if '"ROWS": [' in source else {"LANES": 64}
    found, _ = run(source, task.candidate_entry, point, (x,), tmp_path, monkeypatch)
    for got, want, plain in zip(*map(_flat, (found, op(x.double()), op(x))), strict=True):
        rounding = {FP32: 2.0**-20, HALF: 2.0**-9, BF16: 2.0**-6}[got.dtype]
        lost = plain.isinf() & want.isfinite()  # a sum beyond the dtype
        assert torch.equal(got.isnan(), plain.isnan()), "NaN where PyTorch has it"
        torch.testing.assert_close(got.double()[~lost], want[~lost], rtol=rounding, atol=rounding * 4, equal_nan=True)
    if op is extremes:
        assert all(
            torch.equal(got, plain) or torch.equal(got.isnan(), plain.isnan()) for got, plain in zip(found[:2], op(x)[:2], strict=True)
        )


def test_the_extremes_of_halves_are_exact(tmp_path, monkeypatch):
    torch.manual_seed(1)
    for dtype in (BF16, HALF):
        x = torch.randn(33, 1032).to(dtype) - 8
        task = trace(extremes, x, name="extremes")
        found, _ = run(experts.write("cuda_rows", task, {}), "extremes", {"LANES": 128}, (x,), tmp_path, monkeypatch)
        assert torch.equal(found[0], x.amax(-1)) and torch.equal(found[1], x.amin(-1))


@pytest.mark.parametrize("dtype, suffix", [(BF16, "bf16x2"), (HALF, "f16x2")])
def test_the_card_compares_two_at_once(dtype, suffix, tmp_path):
    x = torch.empty(4096, 8192, dtype=dtype, device="meta")
    for target in ("cuda:80", "cuda:90"):
        task = trace(softmax, x, name="softmax", target=target)
        source = experts.write("cuda_rows", task, {})
        found = record(source, "softmax", {}, task.inputs, TARGETS[target], directory=Path(tmp_path), artifacts=True)
        assert found.error is None and found.launches[0].resources.spill_bytes == 0
        ptx = found.launches[0].artifacts["ptx"]
        assert len(re.findall(rf"max\.NaN\.{suffix} ", ptx)) == 8  # of sixteen elements a thread
        assert "ex2.approx.ftz.f32" in ptx


def _flat(value):
    return value if isinstance(value, tuple) else (value,)

"""On a GPU: rows that a cluster holds and rows that are split, against PyTorch; and Inductor's own kernels as a run's first seed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "knowledge")]

from expert_lab import trace  # noqa: E402

from workbench.build.tune import load_candidate, read_tune  # noqa: E402
from workbench.candidate import Candidate, Verdict  # noqa: E402
from workbench.capture import capture_file  # noqa: E402
from workbench.judge.judge import Judge  # noqa: E402
from workbench.knowledge import experts, inductor  # noqa: E402
from workbench.target import detect_target  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"), pytest.mark.timeout(600)]


def softmax(x):
    return torch.softmax(x, 1)


def layernorm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


def rmsnorm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def l1(x):
    return x / x.abs().mean(1, keepdim=True)


def square_error(x, y):
    return F.mse_loss(x, y)


def log_sum(x):
    return torch.logsumexp(x, 1)


CASES = {
    "ring, rows of 16 KiB": ("cuda_ring", softmax, [(1000, 8192)], torch.bfloat16),
    "ring, weights": ("cuda_ring", rmsnorm, [(1000, 8192), (8192,)], torch.bfloat16),
    "ring, read alone, with a tail": ("cuda_ring", log_sum, [(1000, 32000)], torch.float32),
    "ring, rows that begin anywhere": ("cuda_ring", l1, [(1000, 8001)], torch.float32),
    "cluster, a row of 1.5 MiB": ("cuda_team", softmax, [(300, 393216)], torch.float32),
    "cluster, with a tail": ("cuda_team", softmax, [(300, 100008)], torch.float32),
    "cluster, rows that begin anywhere": ("cuda_team", l1, [(304, 65535)], torch.float32),
    "one block, two on a multiprocessor": ("cuda_team", softmax, [(1024, 32768)], torch.bfloat16),
    "cluster, weights": ("cuda_team", rmsnorm, [(1024, 131072), (131072,)], torch.bfloat16),
    "split, weights": ("cuda_split", layernorm, [(16, 1 << 20), (1 << 20,), (1 << 20,)], torch.float32),
    "split, with a tail": ("cuda_split", softmax, [(5, 1000001)], torch.float32),
    "split, one number": ("cuda_split", square_error, [(4000, 1001), (4000, 1001)], torch.float32),
}


@pytest.mark.parametrize("case", CASES)
def test_long_rows_come_out_right_at_each_point(case, tmp_path):
    name, op, shapes, dtype = CASES[case]
    if name in ("cuda_team", "cuda_ring") and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("clusters and the copy engine need sm_90")
    task = trace(op, *[torch.empty(shape, dtype=dtype, device="meta") for shape in shapes], name=op.__name__, target=detect_target())
    arguments = [torch.randn(shape, dtype=dtype, device="cuda") for shape in shapes]
    truth = op(*[argument.double() for argument in arguments])
    source = experts.write(name, task, {})
    space = read_tune(source)
    default = {key: values[0] for key, values in space.items()}
    rounding = {torch.float32: 2.0**-18, torch.bfloat16: 2.0**-6}[dtype]
    ran = 0
    for number, point in enumerate([default, *({**default, key: value} for key, values in space.items() for value in values[1:])]):
        made = load_candidate(source, task.candidate_entry, point, directory=tmp_path, name=f"candidate_{number}")
        for _ in range(3):  # what one call leaves in shared or global memory must not help or harm the next
            try:
                found = made(*arguments)
            except NotImplementedError:
                continue  # a team that can't hold the row at this point
            ran += 1
            torch.testing.assert_close(found.double(), truth, rtol=rounding, atol=rounding * max(1e-6, truth.abs().max().item()))
    assert ran >= 6


OP = """
import torch


def rmsnorm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def get_inputs():
    return [torch.randn(4096, 8192, dtype=torch.bfloat16), torch.randn(8192, dtype=torch.bfloat16)]
"""


def test_inductors_own_kernels_are_a_right_seed_as_fast_as_torch_compile(tmp_path):
    path = tmp_path / "op.py"
    path.write_text(OP)
    task = capture_file(path, target=detect_target()).task
    judge = Judge(task, device="cuda")
    try:
        prepared = judge.prepare()
        assert prepared.inductor, prepared.notes
        one = Candidate("k1", "triton", prepared.inductor, task.candidate_entry, proposer=inductor.PROPOSER, plan=inductor.PLAN)
        found = judge.evaluate(one, {}, id="k1.0")
    finally:
        judge.close()
    assert found.verdict is Verdict.RIGHT, found.reason
    compiled = next(baseline.timing for baseline in prepared.baselines if baseline.name == "compile")
    assert found.time_us < 1.5 * compiled.median_us

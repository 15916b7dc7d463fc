"""Judging works wherever the workbench is installed, under the scratch folder too."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import workbench

REFERENCE = """
import torch

def double(x):
    return x * 2

def get_inputs():
    return [torch.randn(64, 128)]
"""
CANDIDATE = """
import torch
import triton
import triton.language as tl

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def double(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


def test_a_workbench_under_tmp_judges_as_any_other():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        shutil.copytree(Path(workbench.__file__).parent, folder / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "ref.py").write_text(REFERENCE)
        (folder / "cand.py").write_text(CANDIDATE)
        command = [sys.executable, "-m", "workbench", "judge", "ref.py", "cand.py", "--device", "cpu", "--mode", "quick", "--json"]
        run = subprocess.run(
            command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=200
        )  # fmt: skip
    assert run.stdout, run.stderr
    result = json.loads(run.stdout)
    assert result["verdict"] == "right", result["reason"]

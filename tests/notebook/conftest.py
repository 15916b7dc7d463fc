"""Ops, kernels and a way to run accepted code where nothing but torch and triton can be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from workbench.candidate import Candidate, Evaluation, Timing, Verdict

SOFTMAX = '''
"""One row per program."""
from __future__ import annotations

import torch
import triton
import triton.language as tl

TUNE = {"WARPS": [4, 8]}


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    values = tl.load(x + row * n + columns, mask=inside, other=float("-inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * n + columns, values / tl.sum(values, 0), mask=inside)


def softmax(x, dim):
    if x.shape[1] > 4096:
        raise NotImplementedError("rows of at most 4096")
    y = torch.empty_like(x)
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=WARPS)
    return y
'''

SCALED = """
import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def scale(x, w, y, rows, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < rows * n
    tl.store(y + at, tl.load(x + at, mask=inside) * tl.load(w + at % n, mask=inside), mask=inside)


def scaled(x, weight):
    y = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), BLOCK),)](x, weight, y, x.shape[0], x.shape[1], BLOCK=BLOCK)
    return y
"""


def candidate_of(source: str, entry: str, id: str = "k7") -> Candidate:
    return Candidate(id, "triton", source, entry, proposer="person", plan="one row per program")


def evaluation_of(candidate: Candidate, task: str = "t", verdict: Verdict = Verdict.RIGHT, **fields) -> Evaluation:
    timing = Timing(12.3, 12.3, 12.3, 12.3, 12.3, modelled=True)
    fields = {"judged_by": "interpreter (4×130)", "timing": timing, **fields}
    return Evaluation(f"{candidate.id}.1", candidate.id, task, verdict, **fields)


BARE = """
import json, sys

ALLOWED_OUT = ("workbench", "IPython", "ipykernel", "plotly", "sqlalchemy", "nbformat", "ipywidgets")

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ALLOWED_OUT:
            raise ImportError(f"{name} is not to be had here")

sys.meta_path.insert(0, Block())
"""


@pytest.fixture(scope="session")
def run_bare(tmp_path_factory: pytest.TempPathFactory):
    """Runs code after an accepted cell in a fresh process in which the workbench can't be imported.

    The cell is the module ``cell``; what the code puts into ``found`` comes back, with the process's output.
    """

    def run(cell: str, code: str, *, interpret: bool = True) -> SimpleNamespace:
        folder = tmp_path_factory.mktemp("bare")
        (folder / "cell.py").write_text(cell)
        script = BARE + "found = {}\nimport torch\nimport cell\n" + textwrap.dedent(code) + "\nprint('\\n=found=' + json.dumps(found))\n"
        (folder / "script.py").write_text(script)
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TRITON_INTERPRET")}
        if interpret:
            environment["TRITON_INTERPRET"] = "1"
        done = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", str(folder / "script.py")],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        output, _, found = done.stdout.rpartition("\n=found=")
        return SimpleNamespace(output=output, errors=done.stderr, **json.loads(found))

    return run


@pytest.fixture
def bare(run_bare):
    return run_bare

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
    sets = ("small", "prime", "small, sorted")
    fields = {"judged_by": "interpreter (4×130)", "timing": timing, "input_sets": sets, **fields}
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


def stored_run(store, task, *, run: str = "softmax-1", end: bool = True):
    """A short run in a store: three variants, of which one is right, one wrong and one does not build."""
    from workbench import events
    from workbench.brief import Budget, Proposal
    from workbench.candidate import Baseline, Diagnosis, Witness

    k1 = candidate_of(SOFTMAX, "softmax", "k1")
    k2 = Candidate(
        "k2", "triton", SOFTMAX.replace("tl.exp", "tl.exp2"), "softmax", parents=("k1",), proposer="experts", plan="<b>base two</b>"
    )
    k3 = Candidate("k3", "triton", SOFTMAX.replace("tl.max", "tl.most"), "softmax", parents=("k1",), proposer="experts")
    right = evaluation_of(k1, task.id, parameters={"WARPS": 8})
    wrong = evaluation_of(
        k2, task.id, Verdict.WRONG, timing=None, reason="output 0 differs", witness=Witness(7, "normal", 0, (1, 2), 0.5, 0.25, 1e-6)
    )
    broken = evaluation_of(k3, task.id, Verdict.DOES_NOT_BUILD, timing=None, reason="tl has no most", judged_by="")
    eager = Baseline("eager", Timing(40.0, 40.0, 40.0, 40.0, 40.0, modelled=True))
    happened = [
        events.RunStarted(task, Budget(evaluations=3), 0, ("experts",), cell="cell-1", cell_source=CELL),
        events.Prepared(9.5, (eager, Baseline("compile", None, "no GPU")), "no GPU: interpreter, modelled for cuda:90"),
        *(events.Proposed(Proposal(f"b{number}", one)) for number, one in enumerate((k1, k2, k3), 1)),
        events.Evaluated("b1", right, Diagnosis(right.id, "memory", "It moves the least bytes that it can.", "Use wider loads.")),
        events.BestChanged("k1", right.id, 12.3),
        events.Evaluated("b2", wrong),
        events.Evaluated("b3", broken),
    ]
    if end:
        happened.append(events.Ended("3 evaluations done", "k1"))
    store.extend(run, tuple(happened))
    return run


CELL = "%%evolve_kernel --auto\ndef softmax(x, dim=-1):\n    return torch.softmax(x, dim)\n\ny = softmax(x)\n"


@pytest.fixture(scope="session")
def softmax_task():
    import torch

    from workbench.capture import capture_call

    def softmax(x, dim=-1):
        return torch.softmax(x, dim)

    return capture_call(softmax, (torch.randn(64, 100),)).task


@pytest.fixture(scope="session")
def ipython():
    """The one shell of the process, with the extension loaded."""
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython()
    shell.run_line_magic("load_ext", "workbench")
    return shell


@pytest.fixture
def shell(ipython, tmp_path, monkeypatch):
    """The shell in an empty folder, with no runs of its own."""
    from workbench.notebook.session import SESSION

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBENCH_STORE", raising=False)
    monkeypatch.setattr(SESSION, "runs", {})
    monkeypatch.setattr(SESSION, "current_id", "")
    yield ipython
    for run in SESSION.runs.values():
        run.close()

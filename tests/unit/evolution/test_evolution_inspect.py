"""Looking into variants of a run: blocking, kept in the store's folder, the same after a reopening."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest
from scripted_fleet import ScriptedProposer

from workbench import evolution
from workbench.brief import Proposal
from workbench.candidate import Candidate
from workbench.errors import MisuseError, NoSuchCandidateError
from workbench.store import open_default

SOURCE = """# design=1
import torch
import triton
import triton.language as tl

TUNE = {"BLOCK": [256, 512]}


@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
    return y
"""


class OneVariant(ScriptedProposer):
    async def propose(self, brief):
        return Proposal(brief.id, Candidate(brief.candidate, "triton", SOURCE, "double", brief=brief.id, proposer=self.name))


@pytest.fixture
def run(begin, tmp_path):
    store = open_default(tmp_path)
    made, _ = begin(proposers=(OneVariant(),), store=store, device="cpu")
    made.wait(20)
    return made


def test_a_variant_is_inspected_once_and_then_read(run, tmp_path):
    assert run.cached_inspection("k1.0", "compiler") is None
    report = run.inspect("k1.0", "compiler")
    assert report["launches"][0]["kernel"] == "double_kernel"
    assert report["launches"][0]["constexprs"] == {"BLOCK": 256}
    run._inspecting.close()
    assert run.inspect("k1.0", "compiler") == report == run.cached_inspection("k1.0", "compiler")
    assert run.inspect("k1", "compiler") == report, "a candidate's id means the evaluation that stands for it"
    assert not run._inspecting._inspections.alive, "nothing was started to read it"

    trace = run.inspect("k1.0", "trace")
    file = Path(trace["file"])
    assert file.is_relative_to(tmp_path / ".workbench")
    assert json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert "chrome" not in trace

    again = evolution.open_run(open_default(tmp_path), run.id)
    assert again.cached_inspection("k1.0", "compiler") == report
    file.unlink()
    assert again.cached_inspection("k1.0", "trace") is None, "without its file it is made anew"


def test_what_is_not_there_is_said(run):
    assert "k9" in run.inspect("k9.0", "compiler")["error"]
    assert "k1.7" in run.inspect("k1.7", "compiler")["error"]
    with pytest.raises(NoSuchCandidateError):
        run.cached_inspection("k9.0", "compiler")
    assert "error" in run.inspect("k1.0", "prices")
    assert run.cached_inspection("k1.0", "prices") is None, "a failure is not kept"


def test_a_run_in_memory_is_inspected_too_and_can_be_cancelled(begin):
    made, _ = begin(proposers=(OneVariant(),), device="cpu")
    made.wait(20)
    cancel = threading.Event()
    cancel.set()
    assert made.inspect("k1.0", "memory", cancel=cancel) == {"error": "cancelled"}
    assert made.inspect("k1.0", "memory")["launches"][0]["counted"] > 1


def test_a_subscriber_may_not_wait_for_it(begin):
    made, _ = begin(proposers=(OneVariant(),), device="cpu")
    raised = []

    def ask(stamped):
        try:
            made.inspect("k1.0", "compiler")
        except MisuseError as error:
            raised.append(str(error))

    leave = made.subscribe(ask)
    made.step().wait(20)
    leave()
    assert raised
    assert "thread of your own" in raised[0]

"""Ops that write to their arguments, ops that draw random numbers, and inputs that no distribution describes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from capturing import capture, round_trip

from workbench.capture import capture_call, capture_file, probe
from workbench.inputs import make_inputs
from workbench.judge.correctness.probe import disagreement
from workbench.task import Work

CHANGES = {
    "in place": ("def f(x):\n    x.add_(1.0)\n    return x\nf(torch.randn(3))", ("x",), 2),
    "returns nothing": ("def f(x): x.add_(1)\nf(torch.randn(3))", ("x",), 1),
    "two of three": ("def f(a, b, c):\n    a += c\n    b[0] = 1\n    return a + b\nf(*torch.randn(3, 4))", ("a", "b"), 3),
    "through a view": ("def f(x):\n    x.view(-1)[1:].zero_()\n    return x * 2\nf(torch.randn(3, 4))", ("x",), 2),
    "on data": ("def f(x):\n    x.data.mul_(2)\n    return x + 1\nf(torch.randn(3))", ("x",), 2),
    "without a graph": ("def f(x):\n    if x.sum().item() < 1e9: x.add_(1)\n    return x * 2\nf(torch.randn(3))", ("x",), 2),
    "on a parameter": (
        "def f(w, g):\n    w.sub_(g)\n    return w * 1\nwith torch.no_grad(): f(nn.Parameter(torch.randn(3)), torch.randn(3))", ("w",), 2),
    "in a module": ("net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))\nwith torch.no_grad(): net(torch.randn(2, 4))", None, 2),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_what_an_op_changes_counts_as_its_output(case):
    source, changes, outputs = CHANGES[case]
    captured = capture(source)
    task = round_trip(captured)
    assert len(task.changes) == 1 if changes is None else task.changes == changes
    assert len(task.outputs) == outputs
    assert any("in place: a kernel must change the same" in note for note in captured.notes)


def test_what_the_cell_changes_after_the_call_is_no_change_of_the_op():
    captured = capture("x = torch.randn(3, 4)\ndef f(x):\n    return x * 2\ny = f(x)\nx.zero_()")
    assert captured.task.changes == () and len(captured.task.outputs) == 1


@pytest.mark.parametrize("costly", [False, True])
def test_a_file_whose_op_changes_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, costly: bool) -> None:
    if costly:  # an op that isn't run at capture, for which its graph has to tell
        monkeypatch.setattr("workbench.capture.finishing.COSTLY", Work(0, 0))
    path = tmp_path / "op.py"
    path.write_text("import torch\n\ndef f(x):\n    x.add_(1.0)\n\ndef get_inputs():\n    return [torch.randn(8)]\n")
    task = capture_file(path).task
    assert task.changes == ("x",) and [output.shape for output in task.outputs] == [(8,)]


RANDOM = {
    "dropout": ("def f(x): return F.dropout(x, 0.5)\nf(torch.randn(3))", "bernoulli|dropout"),
    "rand": ("def f(x): return x + torch.rand_like(x)\nf(torch.randn(3))", "rand_like"),
    "multinomial": ("def f(x): return torch.multinomial(x, 2)\nf(torch.rand(3))", "multinomial"),
    "normal_": ("def f(x): return x + torch.empty(3).normal_()\nf(torch.rand(3))", "normal"),
    "dropout in a module": ("net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))\nnet(torch.randn(2, 4))", "dropout|bernoulli"),
    "dropout in attention": (
        "def f(q): return F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)\nf(torch.randn(1, 2, 4, 8))",
        "attention",
    ),
    "Python's random": ("import random\ndef f(x): return x * random.random()\nf(torch.randn(3))", "two runs"),
}  # fmt: skip


@pytest.mark.parametrize("case", RANDOM)
def test_random_ops_are_captured_as_such(case):
    source, words = RANDOM[case]
    captured = capture(source)
    import re

    assert re.search(words, captured.task.random), captured.task.random
    assert any("judged by the distribution" in note for note in captured.notes)
    assert disagreement(captured.task, probe(captured, 3), "cpu") == ""


def test_a_model_with_dropout_is_captured_as_random(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return torch.dropout(x, 0.5, True)\n"
        "def get_inputs(): return [torch.randn(3)]\n"
    )
    assert capture_file(path).task.random


def test_offsets_are_kept_as_they_are():
    offsets = torch.tensor([0, 3, 3, 7, 12], dtype=torch.int32)

    def lengths(x, offsets):
        return x.cumsum(0)[offsets[1:].long() - 1]

    captured = capture_call(lengths, (torch.randn(12), offsets))
    spec = captured.task.inputs[1]
    assert spec.values.kind == "bytes" and any("content itself is part" in note for note in captured.notes)
    for seed in (1, 2):
        assert torch.equal(make_inputs(captured.task.inputs, seed)[1], offsets)
    round_trip(captured)

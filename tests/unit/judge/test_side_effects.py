"""What a call leaves in a model's buffers is part of being right."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from conftest import candidate, make_task, spec

from workbench.candidate import Verdict
from workbench.capture import capture_file
from workbench.capture.references import Reference
from workbench.errors import AcceptRefusedError
from workbench.judge.correctness import buffers
from workbench.judge.correctness.expected import expect
from workbench.judge.judge import Judge
from workbench.notebook.accept import refuse_unless_fit, said

NORM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, momentum=0.3)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(3, 8, 12, 20) + 1]


def get_init_inputs():
    return [8]
"""

HEAD = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, momentum=0.3)

    def forward(self, x):
        norm = self.norm
        over = (0, 2, 3)
        mean, var = x.mean(over), x.var(over, unbiased=False)
        y = (x - mean[:, None, None]) * torch.rsqrt(var + norm.eps)[:, None, None]
        y = torch.relu(y * norm.weight[:, None, None] + norm.bias[:, None, None])
"""
MOVES = """
        count = x.numel() // x.shape[1]
        norm.running_mean.lerp_(mean, 0.3)
        norm.running_var.lerp_(var * count / (count - 1), 0.3)
        norm.num_batches_tracked += 1
        return y
"""

PLAIN = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))
        self.register_buffer("a", torch.zeros(channels))
        self.register_buffer("b", torch.ones(channels))

    def forward(self, x):
        return torch.relu(torch.nn.functional.batch_norm(x, self.a, self.b, self.weight, self.bias, True, 0.3))
"""

CANDIDATES = {
    "moves them": (HEAD + MOVES, ""),
    "puts others in their place": (HEAD + MOVES.replace("norm.running_mean.lerp_(mean, 0.3)", "norm.running_mean = 0.7 * norm.running_mean + 0.3 * mean"), ""),  # noqa: E501
    "leaves them": (HEAD + "        return y\n", "norm.running_mean is not updated, norm.running_var is not updated, norm.num_batches_tracked is not updated"),  # noqa: E501
    "forgets the counter": (HEAD + MOVES.replace("norm.num_batches_tracked += 1", ""), "a call: norm.num_batches_tracked is not updated"),
    "takes the biased variance": (HEAD + MOVES.replace("* count / (count - 1)", ""), "norm.running_var is updated otherwise"),
    "takes another momentum": (HEAD + MOVES.replace("(mean, 0.3)", "(mean, 0.31)"), "norm.running_mean is updated otherwise"),
}  # fmt: skip


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    path = tmp_path_factory.mktemp("norm") / "norm.py"
    path.write_text(NORM)
    return capture_file(path).task


@pytest.fixture(scope="module")
def judge(task, nursery):
    made = Judge(task, device="host", nursery=nursery, baselines=("eager",))
    yield made
    made.close()


def test_the_qualification_names_the_buffers(judge):
    found = judge.qualify()
    assert not found.degenerate  # although the outputs show nothing of the running statistics
    assert found.updates == ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")


@pytest.mark.parametrize("case", CANDIDATES)
def test_one_who_has_the_buffers_leaves_in_them_what_the_reference_does(judge, case):
    source, words = CANDIDATES[case]
    found = judge.evaluate(candidate(source, "ModelNew"), {}, id="k1.0")
    if words:
        assert found.verdict is Verdict.WRONG and words in found.reason, found
        assert "after its parameters were changed" not in found.reason
    else:
        assert found.verdict is Verdict.RIGHT and not any("update" in label for label in found.labels), found


def test_one_who_has_no_such_buffers_gets_a_label_and_is_not_accepted_unasked(judge):
    found = judge.evaluate(candidate(PLAIN, "ModelNew"), {}, id="k1.0")
    assert found.verdict is Verdict.RIGHT, found
    label = "does not update norm.running_mean, norm.running_var, norm.num_batches_tracked"
    assert label in found.labels
    with pytest.raises(AcceptRefusedError, match=f"{label}, as the reference does.*--consent"):
        refuse_unless_fit(found, consent=False)
    refuse_unless_fit(found, consent=True)
    assert label in said(found)


def test_where_the_state_is_free_it_is_a_label_too(task, nursery):
    made = Judge(dataclasses.replace(task, state="free"), device="host", nursery=nursery, baselines=("eager",))
    try:
        found = made.evaluate(candidate(CANDIDATES["leaves them"][0], "ModelNew"), {}, id="k1.0")
        assert found.verdict is Verdict.RIGHT, found
        assert "does not update norm.running_mean, norm.running_var, norm.num_batches_tracked" in found.labels
        moved = made.evaluate(candidate(CANDIDATES["moves them"][0], "ModelNew"), {}, id="k1.1")
        assert moved.verdict is Verdict.RIGHT and not any("update" in label for label in moved.labels), moved
    finally:
        made.close()


def model(buffer, forward):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", buffer)
            self.register_buffer("table", torch.arange(3.0), persistent=False)

    Model.forward = forward
    made = Model()
    return Reference(made, {}, made)


def add_up(self, x):
    self.kept += x.sum()
    return x * 2


def replace_it(self, x):
    self.kept = self.kept * 0.5 + x.mean()
    return x * 2


def leave_it(self, x):
    return x * 2 + self.kept


def draw(self, x):
    self.kept.copy_(torch.rand(()))
    return x * 2


UPDATES = [(add_up, ("kept",)), (replace_it, ("kept",)), (leave_it, ()), (draw, ())]


@pytest.mark.parametrize(("forward", "names"), UPDATES, ids=lambda item: getattr(item, "__name__", ""))
def test_two_calls_from_one_state_tell_what_a_call_updates(forward, names):
    reference = model(torch.tensor(5.0), forward)
    assert buffers.updated(reference, [torch.randn(7)]) == names
    assert float(reference.module.kept) == 5.0


@pytest.mark.parametrize("forward", [add_up, replace_it])
def test_what_a_call_leaves_is_known_in_float64(forward):
    reference = model(torch.tensor(5.0), forward)
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    expected = expect(buffers.as_results(reference, {"kept": torch.tensor(2.0)}), [x])
    right = 2 + x.double().sum() if forward is add_up else 1 + x.double().mean()
    (output,) = expected.outputs
    assert torch.equal(output.truth, right) or abs(float(output.truth - right)) < 1e-12
    assert 0 <= output.error.max < 1e-4


def test_an_op_that_works_in_place_must_leave_in_its_input_what_the_reference_does(nursery):
    reference = "import torch\n\ndef twice(x):\n    x.mul_(2)\n    return x + 1\n"
    outputs = [((24, 40), "float32")] * 2
    made = Judge(
        make_task("twice", reference, [spec("x", (24, 40))], outputs, changes=("x",)), device="host", nursery=nursery, baselines=("eager",)
    )
    try:
        for source, verdict in {
            "def twice(x):\n    x += x\n    return x.add(1)\n": Verdict.RIGHT,
            "def twice(x):\n    return x * 2 + 1\n": Verdict.WRONG,
            "def twice(x):\n    y = x * 2 + 1\n    x.copy_(y)\n    return y\n": Verdict.WRONG,
        }.items():
            found = made.evaluate(candidate(source, "twice"), {}, id="k1.0")
            assert found.verdict is verdict, found
    finally:
        made.close()

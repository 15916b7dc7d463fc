"""Candidates in KernelBench's format keep the reference's constructor."""

from __future__ import annotations

import pytest
import torch
from expert_lab import run_interpreted

from workbench.capture import capture_file
from workbench.knowledge import experts

REFERENCE = '''
import torch
import torch.nn as nn

START = 2.0


class Model(nn.Module):
    """A block."""

    def __init__(self, n, m):
        super(Model, self).__init__()
        self.layers = nn.Sequential(nn.Linear(n, m), nn.GELU())
        self.scale = nn.Parameter(torch.ones(m) * START)

    def forward(self, x):
        return self.layers(x) * self.scale


def get_inputs():
    return [torch.randn(33, 40)]


def get_init_inputs():
    return [40, 50]
'''

DRIVER = """

def both(x):
    torch.manual_seed(0)
    return ModelNew(40, 50)(x)
"""


def test_a_models_parameters_are_found_by_their_paths(tmp_path):
    path = tmp_path / "block.py"
    path.write_text(REFERENCE)
    task = capture_file(path).task
    assert experts.match(task)[0].expert == "matmul"
    source = experts.write("matmul", task, {})
    assert "self.layers[0].weight, self.layers[0].bias" in source
    assert "START = 2.0" in source and "import torch.nn as nn" in source
    x = torch.randn(33, 40)
    job = {"source": source + DRIVER, "entry": "both", "inputs": [x], "parameters": {"TILE": (16, 16, 16)}}
    (output,) = run_interpreted([job], tmp_path)
    assert not isinstance(output, str), output
    namespace = {}
    exec(REFERENCE, namespace)
    torch.manual_seed(0)
    torch.testing.assert_close(output[0], namespace["Model"](40, 50)(x), rtol=1e-5, atol=1e-5)


BATCH_NORM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, momentum=0.3)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(3, 5, 40, 60) + 1]


def get_init_inputs():
    return [5]
"""

STATE = """

def all_of(x):
    model = ModelNew(5)
    first = model(x)
    return first, model(2 * x), model.norm.running_mean, model.norm.running_var, model.norm.num_batches_tracked
"""


@pytest.mark.parametrize("passes", ["split", "loop"])
def test_a_batch_norm_in_training_moves_its_running_statistics(tmp_path, passes):
    path = tmp_path / "norm.py"
    path.write_text(BATCH_NORM)
    task = capture_file(path).task
    assert passes in experts.choices("rows", task)["passes"]
    source = experts.write("rows", task, {"passes": passes})
    x = torch.randn(3, 5, 40, 60) + 1
    job = {
        "source": source + STATE,
        "entry": "all_of",
        "inputs": [x],
        "parameters": {"BLOCK": 256} | ({"SPLIT": 4} if passes == "split" else {}),
    }
    (got,) = run_interpreted([job], tmp_path)
    assert not isinstance(got, str), got
    namespace = {}
    exec(BATCH_NORM, namespace)
    model = namespace["Model"](5)
    expected = [model(x), model(2 * x), model.norm.running_mean, model.norm.running_var, model.norm.num_batches_tracked]
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_what_keeps_running_statistics_is_not_left_to_an_expert_that_would_not_move_them(tmp_path):
    path = tmp_path / "norm.py"
    path.write_text(BATCH_NORM)
    task = capture_file(path).task
    assert [match.expert for match in experts.match(task, ("triton", "cuda"))] == ["rows"]


GIVEN = """
import torch


def norm(x, mean, var):
    return torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.3)


def get_inputs():
    return [torch.randn(3, 5, 40, 60) + 1, torch.randn(5), torch.rand(5) + 0.5]
"""


def test_running_statistics_that_are_arguments_are_moved_in_place(tmp_path):
    path = tmp_path / "given.py"
    path.write_text(GIVEN)
    task = capture_file(path).task
    assert task.changes == ("mean", "var")
    assert [match.expert for match in experts.match(task, ("triton", "cuda"))] == ["rows"]
    source = experts.write("rows", task, {"passes": "loop"}) + "\n\ndef all_of(x, mean, var):\n    return norm(x, mean, var), mean, var\n"
    x, mean, var = torch.randn(3, 5, 40, 60) + 1, torch.randn(5), torch.rand(5) + 0.5
    job = {"source": source, "entry": "all_of", "inputs": [x, mean.clone(), var.clone()], "parameters": {"BLOCK": 256}}
    (got,) = run_interpreted([job], tmp_path)
    assert not isinstance(got, str), got
    right = torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.3)
    for one, other in zip(got, (right, mean, var), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_what_is_written_into_an_argument_by_the_op_itself_has_no_expert_yet():
    from workbench.capture import capture_call

    def halved(x):
        x.mul_(0.5)
        return x + 1

    assert experts.match(capture_call(halved, (torch.randn(8, 8),)).task) == ()

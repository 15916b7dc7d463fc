"""The judge's rebuilt reference computes what the live op does, or says how it differs."""

import dataclasses

import pytest

from workbench.capture import capture_file, probe
from workbench.judge.correctness.probe import disagreement

FUNCTION = """
import torch

def scaled(x, y):
    return (x * 1.5 + y).sum(-1), x.argmax(-1)

def get_inputs():
    return [torch.randn(8, 16), torch.randn(8, 16)]
"""
MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn([4] + sizes))

    def forward(self, x):
        return x * self.scale * 1.5

def get_inputs():
    return [torch.randn(3, 4, 8)]

def get_init_inputs():
    return [[8]]
"""


@pytest.mark.parametrize("text", [FUNCTION, MODEL], ids=["function", "model"])
def test_the_same_op_agrees_and_a_changed_one_does_not(text, tmp_path):
    path = tmp_path / "reference.py"
    path.write_text(text)
    captured = capture_file(path)
    figures = probe(captured, 11)
    assert disagreement(captured.task, figures, "cpu") == ""
    changed = dataclasses.replace(captured.task, reference=text.replace("1.5", "1.6"))
    assert "of output 0 is" in disagreement(changed, figures, "cpu")

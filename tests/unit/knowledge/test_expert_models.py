"""Candidates in KernelBench's format keep the reference's constructor."""

from __future__ import annotations

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

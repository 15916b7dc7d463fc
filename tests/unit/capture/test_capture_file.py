"""Reference files of the command line, the probe, and the loading of references."""

from __future__ import annotations

import json

import pytest
import torch
from capturing import capture, round_trip

from workbench.capture import capture_file, probe
from workbench.capture.references import fingerprint, flatten, load_reference
from workbench.errors import CaptureError
from workbench.inputs import make_inputs
from workbench.task import Task, Work

MODEL = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    """Simple model that performs a matrix multiplication and a scale."""
    def __init__(self, size, scale=2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size))
        self.bn = nn.BatchNorm1d(size)
        self.scale = scale

    def forward(self, x: torch.Tensor, k) -> torch.Tensor:
        return self.bn(x @ self.weight) * self.scale * k

batch_size = 16

def get_inputs():
    return [torch.rand(batch_size, 8), 3]

def get_init_inputs():
    return [8, 0.5]
'''

FUNCTION = """
import torch
SCALE = 2
def helper(x):
    return x * SCALE
def scaled(x, y=None):
    return helper(x) if y is None else helper(x) + y
def get_inputs():
    return [torch.rand(16, 8)]
"""


def test_kernelbench_file_is_kept_as_it_is(tmp_path) -> None:
    path = tmp_path / "matmul_scale.py"
    path.write_text(MODEL)
    captured = capture_file(path, target="cuda:80", precision="tf32")
    task = captured.task
    assert (task.name, task.reference, task.format, task.entry) == ("matmul_scale", MODEL, "model", "Model")
    assert (task.init_args, task.target, task.precision) == ((8, 0.5), "cuda:80", "tf32")
    assert [(spec.name, spec.dtype, spec.values.kind) for spec in task.inputs] == [("x", "float32", "uniform"), ("k", "python", "scalar")]
    assert task.graph.ops()[-3:] == ("getitem", "mul", "mul")
    round_trip(captured)


def test_models_are_constructed_alike_from_one_seed(tmp_path) -> None:
    path = tmp_path / "ref.py"
    path.write_text(MODEL)
    task = capture_file(path).task
    state = torch.get_rng_state()
    one, two, other = (load_reference(task, seed=seed).module for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), state), "the caller's random state is kept"
    assert torch.equal(one.weight, two.weight) and not torch.equal(one.weight, other.weight)


def test_function_file(tmp_path) -> None:
    path = tmp_path / "ref.py"
    path.write_text(FUNCTION)
    task = round_trip(capture_file(path))
    assert (task.entry, task.format) == ("scaled", "function")
    assert "SCALE = 2" in task.reference and "get_inputs" not in task.reference


def test_file_leaves_the_random_state_alone(tmp_path) -> None:
    path = tmp_path / "ref.py"
    path.write_text(MODEL)
    state = torch.get_rng_state()
    capture_file(path)
    assert torch.equal(torch.get_rng_state(), state)


LISTS = """
import torch
class Model(torch.nn.Module):
    def __init__(self, sizes, more):
        super().__init__()
        sizes = [8] + sizes
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.hidden = torch.zeros(2, sizes[-1])
    def forward(self, x):
        if x.dim() > 7:
            x = checkpoint(x)
        for layer in self.layers:
            x = layer(x)
        self.hidden.copy_(x)
        return self.hidden * 2
def get_inputs(): return [torch.randn(2, 8)]
def get_init_inputs(): return [[4, 6], [[1, 2], "x"]]
"""


def test_lists_to_construct_with_undefined_branches_and_a_state_of_its_own(tmp_path) -> None:
    path = tmp_path / "ref.py"
    path.write_text(LISTS)
    captured = capture_file(path)
    task = round_trip(captured)
    assert task.init_args == ((4, 6), ((1, 2), "x"))
    assert "addmm" in task.graph.ops(), "what can't be made functional is traced with its writes"


def test_graph_too_long_to_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.capture.tracing.LIMIT", 50)
    captured = capture("def f(x):\n    for _ in range(60):\n        x = x + 1\n    return x\ny = f(torch.randn(4))")
    assert captured.task.graph.nodes == ()
    assert captured.notes == ("no graph: it makes more than 50 calls",)
    round_trip(captured)


def test_large_files_are_not_run_to_see_their_outputs(tmp_path) -> None:
    path = tmp_path / "ref.py"
    path.write_text(
        "import torch\ndef f(a, b):\n    return a @ b\n"
        "def get_inputs():\n    return [torch.empty(1, 1).expand(4096, 4096), torch.empty(1, 1).expand(4096, 4096)]\n"
    )
    captured = capture_file(path)
    assert captured.value is None and "wasn't run at capture" in captured.notes[-1]
    assert captured.task.outputs[0].shape == (4096, 4096)
    assert captured.task.work.flops == 2 * 4096**3


def test_probe_is_what_the_rebuilt_reference_gives() -> None:
    captured = capture("w = torch.randn(8)\ndef f(x, k): return x * w * k, (x > 0), x.argmax(-1)\nf(torch.randn(16, 8), 3)")
    found = json.loads(json.dumps(probe(captured, 11)))
    outputs = load_reference(captured.task)(*make_inputs(captured.task.inputs, 11))
    assert (found["seed"], found["device"]) == (11, "cpu")
    assert found["outputs"] == [fingerprint(output) for output in outputs]
    first = outputs[0]
    assert found["outputs"][0]["sample"] == first.flatten()[::2].tolist(), "64 of 128 elements, evenly spread"
    assert found["outputs"][0]["abs_sum"] == pytest.approx(first.abs().sum().item(), rel=1e-5)
    assert [output["dtype"] for output in found["outputs"]] == ["float32", "bool", "int64"]


def test_fingerprints_of_odd_outputs_are_json() -> None:
    for tensor in (torch.empty(0, 3), torch.tensor(float("nan")), torch.tensor([float("inf"), 1.0]), torch.ones(3).to(torch.float8_e5m2)):
        json.dumps(fingerprint(tensor), allow_nan=False)


def test_flatten_takes_tensors_in_one_order() -> None:
    a, b, c, d = (torch.full((1,), float(value)) for value in range(4))
    assert [t.item() for t in flatten({"z": a, "y": [b, (c, None, "text")], "x": {"w": d}})] == [0, 1, 2, 3]


def test_broken_reference_is_one_line() -> None:
    task = Task("f", "import torch\nraise KeyError('k')\n", "f", (), (), Work(0, 0))
    with pytest.raises(CaptureError, match=r"doesn't run in an empty namespace: KeyError: 'k' \(line 2\)"):
        load_reference(task)
    task = Task("f", "import torch\n", "f", (), (), Work(0, 0))
    with pytest.raises(CaptureError, match="the reference of f doesn't define f"):
        load_reference(task)

"""Values like the real tensor's, never neutral ones."""

from __future__ import annotations

import math
import time

import pytest
import torch
from capturing import capture, notebook

from workbench.capture.specs import describe_tensor, describe_values
from workbench.inputs import make_input
from workbench.task import InputSpec

INF = float("inf")


def described(tensor: torch.Tensor) -> tuple[str, dict[str, float]]:
    values, _ = describe_values(tensor)
    return values.kind, dict(values.args)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


KINDS = {
    "normal": (lambda: torch.randn(1000) * 2 + 5, "normal", {"mean": 5, "std": 2}),
    "centred": (lambda: torch.randn(100, 1000), "normal", {"mean": 0, "std": 1}),
    "uniform": (lambda: torch.rand(100, 100), "uniform", {"lo": 0, "hi": 1}),
    "uniform around zero": (lambda: torch.rand(5000) * 0.02 - 0.01, "uniform", {"lo": -0.01, "hi": 0.01}),
    "positive": (lambda: torch.randn(1000).exp(), "positive", {}),
    "after relu": (lambda: torch.randn(1000).relu(), "positive", {}),
    "softmax rows": (lambda: torch.randn(30, 5, 7).softmax(-1), "probabilities", {"dim": -1}),
    "softmax columns": (lambda: torch.randn(30, 5, 7).softmax(1), "probabilities", {"dim": -2}),
    "half softmax": (lambda: torch.randn(30, 50).softmax(-1).bfloat16(), "probabilities", {"dim": -1}),
    "one hot": (lambda: torch.eye(5)[torch.randint(5, (20,))], "one_hot", {"dim": -1}),
    "one hot integers": (lambda: torch.nn.functional.one_hot(torch.randint(5, (20,))), "one_hot", {"dim": -1}),
    "lower": (lambda: torch.randn(50, 50).tril(), "triangular", {"lower": 1}),
    "upper": (lambda: torch.randn(3, 50, 50).triu(), "triangular", {"lower": 0}),
    "mask of zeros and ones": (lambda: (torch.rand(100, 100) < 0.3).float(), "mask", {"p": 0.3}),
    "boolean mask": (lambda: torch.rand(100, 100) < 0.3, "mask", {"p": 0.3}),
    "additive mask": (lambda: torch.where(torch.rand(100, 100) < 0.3, 0.0, -INF), "mask", {"p": 0.3, "on": 0, "off": -INF}),
    "causal mask": (lambda: torch.full((8, 8), -INF).triu(1), "mask", {"on": 0, "off": -INF}),
    "scaled mask": (lambda: (torch.rand(100, 100) < 0.3) * 2.0, "mask", {"p": 0.3, "on": 2, "off": 0}),
    "index": (lambda: torch.randint(3, 10, (50, 9)), "integers", {"lo": 3, "hi": 10}),
    "bytes": (lambda: torch.randint(0, 256, (5000,), dtype=torch.uint8), "integers", {"lo": 0, "hi": 256}),
    "permutation": (lambda: torch.randperm(70), "permutation", {}),
    "permutations": (lambda: torch.stack([torch.randperm(7) for _ in range(5)]), "permutation", {}),
    "weight of ones": (lambda: torch.ones(64), "uniform", {"lo": 0.5, "hi": 1.5}),
    "bias of zeros": (lambda: torch.zeros(64), "normal", {"mean": 0, "std": 0.5}),
    "constant": (lambda: torch.full((4, 4), -2.0), "uniform", {"lo": -3, "hi": -1}),
    "one number": (lambda: torch.tensor(0.125), "uniform", {"lo": 0.0625, "hi": 0.188}),
    "empty": (lambda: torch.empty(0, 3), "normal", {}),
    "expanded": (lambda: torch.randn(200, 1).expand(200, 1 << 24), "normal", {}),
    "float8": (lambda: torch.randn(300, 300).to(torch.float8_e4m3fn), "normal", {"mean": 0, "std": 1}),
    "float64": (lambda: torch.randn(300, dtype=torch.float64), "normal", {}),
}


@pytest.mark.parametrize(("make", "kind", "args"), KINDS.values(), ids=KINDS)
def test_kind_of_values(make, kind: str, args: dict[str, float]) -> None:
    found, given = described(make())
    assert found == kind
    for key, value in args.items():
        assert given[key] == value if math.isinf(value) else given[key] == pytest.approx(value, abs=0.06, rel=0.05)


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("empty", "expanded")])
def test_drawn_tensor_is_of_the_same_kind(name: str) -> None:
    tensor = KINDS[name][0]()
    spec, _ = describe_tensor("x", tensor)
    drawn = make_input(spec, 1)
    assert (drawn.shape, drawn.dtype, drawn.stride()) == (tensor.shape, tensor.dtype, tensor.stride())
    if tensor.dtype in (torch.int64, torch.uint8):
        assert drawn.min() >= tensor.min() and drawn.max() <= tensor.max()
    if name in ("softmax rows", "softmax columns", "one hot", "lower", "upper", "index", "permutation", "additive mask", "boolean mask"):
        assert described(drawn)[0] == KINDS[name][1]
    if drawn.numel() > 1:
        assert drawn.float().unique().numel() > 1, "never the same everywhere"


def test_strides_are_kept() -> None:
    spec, _ = describe_tensor("x", torch.randn(4, 6, 8).permute(2, 0, 1)[::2])
    assert (spec.shape, spec.strides) == ((4, 4, 6), (2, 48, 8))
    spec, _ = describe_tensor("x", torch.randn(5, 1).expand(5, 9))
    assert spec.strides == (1, 0) and spec.nbytes == 20


def test_what_will_not_be_reproduced_is_noted() -> None:
    notes = capture("def f(x): return x * 2\nf(torch.tensor([1.0, float('nan'), 3.0]))").notes
    assert notes == ("input x holds NaN; the values drawn for it do not",)
    assert "input i is sorted" in capture("def f(i): return i * 2\nf(torch.tensor([0, 3, 3, 9]))").notes[0]
    assert "input i is 4 everywhere" in capture("def f(i): return i * 2\nf(torch.full((9,), 4))").notes[0]
    assert "infinities" in capture("def f(x): return x * 2\nf(torch.tensor([1.0, float('inf'), 3.0]))").notes[0]


def test_class_targets_stay_valid() -> None:
    task = capture("def f(x, t): return F.cross_entropy(x, t)\nf(torch.randn(64, 10), torch.randint(0, 10, (64,)))").task
    assert task.inputs[1].values.args == {"lo": 0.0, "hi": 10.0}


def test_python_values() -> None:
    cell = "def f(x, a, b, c, d, e): return x * a\nf(torch.ones(2), 2, 0.5, True, (1, 2.5, None), 'mode')"
    specs = capture(cell).task.inputs[1:]
    assert [spec.values.value for spec in specs] == [2, 0.5, True, (1, 2.5, None), "mode"]
    assert all(spec == InputSpec(spec.name, (), "python", (), spec.values) for spec in specs)
    captured = capture("def f(x, a): return x.clamp(max=a)\nf(torch.ones(2), float('inf'))")
    assert captured.task.inputs[1].values.value == INF


def test_describing_a_large_tensor_is_fast() -> None:
    tensor = torch.empty(1 << 26).normal_()
    describe_values(tensor)
    start = time.perf_counter()
    describe_values(tensor)
    assert time.perf_counter() - start < 0.5


def test_capture_costs_little_beyond_the_op() -> None:
    cell = "def f(x): return torch.softmax(x, -1)\ny = f(x)"
    capture(cell, notebook(x=torch.randn(4, 4)))  # first use loads torch's tracer
    x = torch.randn(2048, 4096)
    start = time.perf_counter()
    for _ in range(3):
        torch.softmax(x, -1)
    op = (time.perf_counter() - start) / 3
    start = time.perf_counter()
    capture(cell, notebook(x=x))
    assert time.perf_counter() - start < 1 + 3 * op

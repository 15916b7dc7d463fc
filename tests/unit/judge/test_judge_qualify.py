"""Ops on which bad answers can't be told from good ones are named, with what to change; sound ones are not."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from conftest import candidate, make_task, spec

from workbench.capture.references import load_reference
from workbench.judge.correctness import qualify
from workbench.judge.judge import Judge


def qualified(source, inputs, outputs, **options):
    name = source.split("def ")[1].split("(")[0]
    reference = load_reference(make_task(name, source, inputs, outputs), device="cpu")
    seeds = iter(range(100, 200))
    return qualify.qualify(reference, tuple(inputs), lambda: next(seeds), "cpu", **options)


NORMALISED_AWAY = """import torch

def projected(x, w, b, y):
    z = (x @ w + b).unsqueeze(-1)
    n = (z - z.mean(-1, keepdim=True)) * torch.rsqrt(z.var(-1, keepdim=True, correction=0) + 1e-5)
    return (n.squeeze(-1) + y) * y
"""
"""Normalised over one element, what was projected is gone: the result is y * y."""

DEGENERATE = {
    "an input is normalised away": (
        NORMALISED_AWAY, [spec("x", (32, 48)), spec("w", (48, 40)), spec("b", (40,)), spec("y", (32, 40))], [((32, 40), "float32")],
        "input x does not matter", "give inputs on which x changes",
    ),
    "sums of probabilities": (
        "import torch\ndef one(x):\n    return torch.softmax(x, -1).sum(-1)\n", [spec("x", (64, 256))], [((64,), "float32")],
        "the mean everywhere", "differ from one another",
    ),
    "saturated": (
        "import torch\ndef sat(x):\n    return torch.sigmoid(x.abs().sum(-1))\n", [spec("x", (64, 999))], [((64,), "float32")],
        "the mean everywhere", "differ from one another",
    ),
    "always false": (
        "import torch\ndef above(x):\n    return x > 100\n", [spec("x", (64, 99))], [((64, 99), "bool")], "zeros", "differ from zero",
    ),
    "nothing happens": (
        "import torch\ndef same(x):\n    return x.clamp(-1000, 1000)\n", [spec("x", (64, 99))], [((64, 99), "float32")],
        "the first input returned", "inputs that it changes",
    ),
    "an input that is multiplied by nothing": (
        "import torch\ndef off(x, y):\n    return x + 0 * y\n", [spec("x", (64, 99)), spec("y", (64, 99))], [((64, 99), "float32")],
        "the first input returned", "inputs that it changes",
    ),
    "differences of the same": (
        "import torch\ndef diff(x):\n    m = x.amax(-1, keepdim=True)\n    return (m - m.mean(-1, keepdim=True)).relu()\n",
        [spec("x", (64, 99))], [((64, 1), "float32")], "zeros", "differ from zero",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_ops_are_named_with_what_to_change(case):
    source, inputs, outputs, name, advice = DEGENERATE[case]
    found = qualified(source, inputs, outputs)
    assert found.degenerate == name or (name.startswith("input") and "does not matter" in found.degenerate), found
    assert advice in found.advice or "changes the result" in found.advice
    assert any(not canary.told for canary in found.canaries)


def test_every_input_that_was_normalised_away_has_no_impact():
    source, inputs, outputs, *_ = DEGENERATE["an input is normalised away"]
    found = qualified(source, inputs, outputs)
    assert found.impact["y"] > 1e4
    assert all(found.impact[name] < qualify.IMPACT for name in ("x", "w", "b"))
    assert {canary.name for canary in found.canaries if not canary.told} >= {f"input {name} drawn anew" for name in ("x", "w", "b")}


SOUND = {
    "softmax of a long row": (
        "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n", [spec("x", (2, 39321), kind="uniform", lo=0, hi=1)],
        [((2, 39321), "float32")],
    ),
    "over the norm of everything": (
        "import torch\ndef frobenius(x):\n    return x / torch.norm(x)\n", [spec("x", (16, 8, 64))], [((16, 8, 64), "float32")],
    ),
    "over the norm of a row": (
        "import torch\ndef l2(x):\n    return x / torch.norm(x, p=2, dim=1, keepdim=True)\n",
        [spec("x", (8, 4096))], [((8, 4096), "float32")],
    ),
    "the least of many": (
        "import torch\ndef least(x):\n    return torch.min(x, dim=1)[0]\n", [spec("x", (4, 256, 64), kind="uniform", lo=0, hi=1)],
        [((4, 64), "float32")],
    ),
    "product with a bias in bfloat16": (
        "import torch\ndef linear(x, w, b):\n    return torch.relu(x @ w + b)\n",
        [spec("x", (32, 512), "bfloat16"), spec("w", (512, 48), "bfloat16"), spec("b", (48,), "bfloat16")], [((32, 48), "bfloat16")],
    ),
    "where the largest is": ("import torch\ndef top(x):\n    return x.argmax(-1)\n", [spec("x", (64, 409))], [((64,), "int64")]),
    "a loss": (
        "import torch\nimport torch.nn.functional as F\ndef loss(x, t):\n    return F.cross_entropy(x, t)\n",
        [spec("x", (64, 200)), spec("t", (64,), "int64", "integers", lo=0, hi=200)], [((), "float32")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SOUND)
def test_sound_ops_are_not_degenerate_and_zeros_are_told_from_tiny_results(case):
    source, inputs, outputs = SOUND[case]
    found = qualified(source, inputs, outputs)
    assert found.degenerate == "" and found.advice == "", found
    assert all(canary.told for canary in found.canaries if not canary.name.startswith("computed in"))
    if outputs[0][1] == "float32":
        assert found.blind == () and {"computed in bf16", "computed in fp16"} <= {canary.name for canary in found.canaries}
        assert found.low is not None and found.low < found.high and found.error < 1e-5


def test_an_op_that_hides_its_precision_is_told_and_not_called_degenerate():
    source = "import torch\ndef positive(x):\n    return (x > 0).float()\n"
    found = qualified(source, [spec("x", (64, 200))], [((64, 200), "float32")])
    assert found.degenerate == "" and found.blind == ("fp16", "bf16"), found


def test_an_argument_that_the_op_never_reads_is_no_fault_of_its_values():
    source = "import torch\ndef f(x, y):\n    return x * 2 + 1\n"
    inputs = [spec("x", (64, 99)), spec("y", (64, 99))]
    assert qualified(source, inputs, [((64, 99), "float32")], used=("x",)).degenerate == ""
    assert qualified(source, inputs, [((64, 99), "float32")]).degenerate == "input y does not matter"


def test_a_parameter_that_does_not_matter_is_named():
    source = (
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.inner = torch.nn.Linear(16, 8)\n        self.outer = torch.nn.Linear(16, 8)\n"
        "    def forward(self, x):\n        return self.outer(x) + (self.inner(x) - self.inner(x))\n"
    )
    task = make_task("Model", source, [spec("x", (32, 16))], [((32, 8), "float32")], format="model")
    seeds = iter(range(100))
    found = qualify.qualify(load_reference(task, device="cpu", seed=0), task.inputs, lambda: next(seeds), "cpu")
    assert found.degenerate.startswith("parameter inner") and found.impact["outer.weight"] > qualify.IMPACT, found


def test_a_saturated_op_is_found_at_its_own_size_too(nursery):
    # On the small shapes that are interpreted the sum stays small, at 4096 columns every sigmoid is 1.
    source = "import torch\ndef sat(x):\n    return torch.sigmoid((x.abs() * 0.02).sum(-1) - 2)\n"
    task = make_task("sat", source, [spec("x", (64, 65536))], [((64,), "float32")])
    judge = Judge(task, device="cpu", nursery=nursery)
    try:
        found = judge.qualify()
        assert found.degenerate and "own shapes" in found.advice, found
    finally:
        judge.close()


def test_the_preparation_says_it_and_a_right_candidate_still_gets_its_verdict(nursery):
    source, inputs, outputs, *_ = DEGENERATE["an input is normalised away"]
    judge = Judge(make_task("projected", source, inputs, outputs), device="cpu", seed=3, nursery=nursery)
    try:
        prepared = judge.prepare(None)
        assert "does not matter" in prepared.warning and prepared.notes[0] == prepared.warning
        assert prepared.qualification.degenerate == prepared.degenerate
        lazy = judge.evaluate(candidate("def projected(x, w, b, y):\n    return y * y\n", "projected"), {}, id="k1.0")
        assert lazy.verdict.value == "right"  # which is why such an op is not searched silently
    finally:
        judge.close()


def test_noise_of_an_undeclared_random_op_is_told():
    source = "import torch\ndef jitter(x):\n    return x + torch.rand_like(x)\n"
    found = qualified(source, [spec("x", (32, 48))], [((32, 48), "float32")])
    assert found.random and found.noise > 1e-3


def test_a_random_op_is_qualified_by_its_distribution():
    source = "import torch\ndef drop(x):\n    return torch.dropout(x, 0.5, True)\n"
    task = dataclasses.replace(make_task("drop", source, [spec("x", (64, 80))], [((64, 80), "float32")]), random="aten.dropout")
    with torch.random.fork_rng():
        found = qualify.qualify(load_reference(task, device="cpu"), task.inputs, lambda: 7, "cpu")
    assert found.degenerate == "" and found.random == "aten.dropout"
    assert {"zeros", "no randomness at all"} <= {canary.name for canary in found.canaries if canary.told}

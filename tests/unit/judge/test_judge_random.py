"""Random ops are compared by distribution: what draws from the same one is right, however it draws; all else is told, and why."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from conftest import candidate, make_task, spec

from workbench.candidate import Verdict
from workbench.capture.references import load_reference
from workbench.inputs import make_inputs
from workbench.judge.correctness.compare import compare
from workbench.judge.correctness.expected import expect
from workbench.judge.judge import Judge

SHAPE = (48, 160)
REFERENCES = {
    "dropout": "import torch\ndef f(x):\n    return torch.dropout(torch.relu(x), 0.3, True)\n",
    "signed": "import torch\ndef f(x):\n    return torch.dropout(x, 0.3, True)\n",
    "noise": "import torch\ndef f(x):\n    return x + 0.1 * torch.randn_like(x)\n",
    "choice": "import torch\ndef f(x):\n    return torch.multinomial(torch.softmax(4 * x, -1), 6)\n",
    "channels": "import torch\ndef f(x):\n    return torch.nn.functional.dropout1d(x.unsqueeze(0), 0.5).squeeze(0)\n",
}


@pytest.fixture(scope="module")
def expected():
    made = {}
    for name, source in REFERENCES.items():
        dtype = "int64" if name == "choice" else "float32"
        outputs = [((48, 6) if name == "choice" else SHAPE, dtype)]
        task = dataclasses.replace(make_task("f", source, [spec("x", SHAPE)], outputs), random="yes")
        inputs = make_inputs(task.inputs, 4)
        made[name] = (inputs[0], expect(load_reference(task), inputs))
    return made


def keep(x, p, *shape):
    return (torch.rand(shape or x.shape) >= p).to(x.dtype)


RIGHT = {
    "dropout": [lambda x: torch.relu(x) * keep(x, 0.3) / 0.7, lambda x: torch.dropout(torch.relu(x), 0.3, True)],
    "signed": [lambda x: x * keep(x, 0.3) / 0.7],
    "noise": [lambda x: torch.normal(x, 0.1)],
    "choice": [lambda x: (torch.log_softmax(4 * x, -1) - torch.empty_like(x).exponential_().log()).topk(6, -1).indices],
    "channels": [lambda x: x * keep(x, 0.5, 48, 1) * 2],
}
WRONG = {
    "dropout": {
        "another share": lambda x: torch.relu(x) * keep(x, 0.4) / 0.7,
        "no scale": lambda x: torch.relu(x) * keep(x, 0.3),
        "scale of the share dropped": lambda x: torch.relu(x) * keep(x, 0.3) / 0.3,
        "one mask for all rows": lambda x: torch.relu(x) * keep(x, 0.3, 160) / 0.7,
        "one mask for all columns": lambda x: torch.relu(x) * keep(x, 0.3, 48, 1) / 0.7,
        "pairs": lambda x: torch.relu(x) * keep(x, 0.3, 48, 80).repeat_interleave(2, 1) / 0.7,
        "every third and a bit": lambda x: torch.relu(x) * (torch.arange(x.numel()) % 10 >= 3).view(SHAPE) / 0.7,
        "nothing dropped": torch.relu,
        "its mean": lambda x: torch.relu(x) * 1.0,
        "not the op": lambda x: x * keep(x, 0.3) / 0.7,
        "zeros": torch.zeros_like,
        "kept values 1 % off": lambda x: torch.relu(x) * keep(x, 0.3) / 0.7 * 1.01,
        "NaN in one place": lambda x: torch.relu(x).index_fill(0, torch.tensor([5]), float("nan")),
    },
    "noise": {
        "uniform of the same variance": lambda x: x + 0.1 * 12**0.5 * (torch.rand_like(x) - 0.5),
        "a tenth wider": lambda x: x + 0.11 * torch.randn_like(x),
        "off centre": lambda x: x + 0.02 + 0.1 * torch.randn_like(x),
        "one row of noise": lambda x: x + 0.1 * torch.randn(160),
        "smooth noise": lambda x: x + 0.1 * 2**-0.5 * (lambda n: n[:, 1:] + n[:, :-1])(torch.randn(48, 161)),
        "none": torch.clone,
    },
    "choice": {
        "uniform": lambda x: torch.stack([torch.randperm(160)[:6] for _ in range(48)]),
    },
    "channels": {"elements": lambda x: x * keep(x, 0.5) * 2},
    "signed": {"one mask for all rows": lambda x: x * keep(x, 0.3, 160) / 0.7, "zeros": torch.zeros_like},
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_draws_from_the_same_distribution_is_right(expected, name):
    x, right = expected[name]
    assert right.random
    for number, call in enumerate(RIGHT[name]):
        for seed in range(6):
            torch.manual_seed(1000 * number + seed)
            found = compare(call(x), right.outputs[0])
            assert found.right, (name, number, seed, found)


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, cases in WRONG.items() for what in cases])
def test_what_does_not_is_wrong(expected, name, what):
    x, right = expected[name]
    torch.manual_seed(5)
    found = compare(WRONG[name][what](x), right.outputs[0])
    assert not found.right and found.reason and found.ratio > 1, found
    if what in ("another share", "nothing dropped"):
        assert "is zero where 0." in found.reason or "mean" in found.reason


def test_the_same_numbers_at_every_call_are_told(expected):
    x, right = expected["dropout"]
    torch.manual_seed(1)
    one, two = RIGHT["dropout"][0](x), RIGHT["dropout"][0](x)
    draws = right.outputs[0].draws
    assert draws.together(one, two) is None
    fault = draws.together(one, one.clone())
    assert fault is not None and "same random numbers" in fault.reason


def test_several_calls_show_what_one_hides(expected):
    x, right = expected["dropout"]
    draws = right.outputs[0].draws
    torch.manual_seed(2)
    assert draws.pooled([RIGHT["dropout"][0](x) for _ in range(6)]) is None
    slightly = [torch.relu(x) * keep(x, 0.33) / 0.7 for _ in range(6)]
    assert draws.pooled(slightly) is not None


def test_an_output_without_chance_is_compared_as_ever():
    source = "import torch\ndef f(x):\n    return x * 2, torch.dropout(x, 0.5, True)\n"
    task = dataclasses.replace(make_task("f", source, [spec("x", SHAPE)], [(SHAPE, "float32")] * 2), random="yes")
    inputs = make_inputs(task.inputs, 4)
    plain, random = expect(load_reference(task), inputs).outputs
    assert plain.draws is None and random.draws is not None
    assert compare(inputs[0] * 2, plain).right and not compare(inputs[0] * 2.001, plain).right


def test_a_random_op_goes_through_the_whole_judge(nursery):
    task = dataclasses.replace(make_task("f", REFERENCES["dropout"], [spec("x", SHAPE)], [(SHAPE, "float32")]), random="aten.dropout")
    judge = Judge(task, device="cpu", nursery=nursery)
    body = "import torch\ndef f(x):\n    keep = torch.rand(x.shape{}) >= 0.3\n    return torch.relu(x) * keep / 0.7\n"
    try:
        prepared = judge.prepare(None)
        assert not prepared.degenerate and prepared.qualification.random == "aten.dropout"
        found = judge.evaluate(candidate(body.format(""), "f"), {}, id="k1.0")
        assert found.verdict is Verdict.RIGHT and found.reason.startswith("right (distribution)"), found
        fixed = body.format(", generator=torch.Generator().manual_seed(1)")
        found = judge.evaluate(candidate(fixed, "f"), {}, id="k1.1")
        assert found.verdict is Verdict.WRONG and "same random numbers" in found.reason, found
    finally:
        judge.close()

"""What the judge found can be seen again, and ops that change their inputs are held to that."""

from __future__ import annotations

import dataclasses
import json

import pytest
from conftest import candidate, make_task, spec

from workbench.candidate import Verdict
from workbench.cli import main
from workbench.judge.judge import Judge

CLAMPED = """import torch


def clamped(x, w):
    return torch.relu(x) * w + 1


def get_inputs():
    return [torch.randn(24, 40), torch.randn(40)]
"""
MOSTLY = "import torch\n\n\ndef clamped(x, w):\n    return torch.where(x < 2.5, torch.relu(x), 2.5) * w + 1\n"
MODEL = """import torch


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x * self.scale


def get_inputs():
    return [torch.randn(24, 40)]


def get_init_inputs():
    return [40]
"""


def judged(capsys, *arguments):
    status = main(["judge", *map(str, arguments), "--device", "cpu", "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "ref.py").write_text(CLAMPED)
    (tmp_path / "cand.py").write_text(MOSTLY)
    return tmp_path / "ref.py", tmp_path / "cand.py"


def test_a_refusal_says_how_to_see_it_again_and_it_is_the_very_same(files, capsys):
    status, first = judged(capsys, *files)
    assert status == 1 and first["verdict"] == "wrong"
    witness = first["witness"]
    assert witness["got"] is not None and witness["index"] and witness["bound"] > 0 and "out of bounds" in first["reason"]
    command = witness["replay"].split()
    assert command[:4] == ["python", "-m", "workbench", "judge"] and "--seed" in command
    status, again = judged(capsys, *files, "--seed", command[command.index("--seed") + 1])
    assert status == 1 and again["witness"] == witness and again["reason"] == first["reason"]
    _, other = judged(capsys, *files)
    assert other["witness"]["seed"] != witness["seed"]


def test_the_answer_has_every_field(files, capsys, tmp_path):
    (tmp_path / "right.py").write_text(CLAMPED.split("\n\n\ndef get_inputs")[0] + "\n")
    status, found = judged(capsys, files[0], tmp_path / "right.py", "--mode", "quick")
    assert status == 0 and found["verdict"] == "right" and found["witness"] is None
    assert set(found) >= {
        "verdict", "reason", "witness", "labels", "runtime_us", "baselines_us", "speedup", "floor_us", "modelled", "qualification",
    }  # fmt: skip
    assert found["modelled"] is True and found["speedup"] is None and found["floor_us"] > 0
    assert found["qualification"]["degenerate"] == "" and len(found["qualification"]["canaries"]) >= 8
    assert "no kernel of its own" in found["labels"] and "own kernels 0 %" in found["labels"]
    assert found["evaluation"]["own_kernel_share"] == 0


def test_a_models_parameters_are_the_same_when_it_is_seen_again(tmp_path, capsys):
    (tmp_path / "ref.py").write_text(MODEL)
    (tmp_path / "cand.py").write_text(
        MODEL.replace("class Model", "class ModelNew").replace("x * self.scale", "x * self.scale.clamp(max=1.1)")
    )
    status, first = judged(capsys, tmp_path / "ref.py", tmp_path / "cand.py", "--mode", "quick")
    assert status == 1 and first["verdict"] == "wrong", first
    _, again = judged(capsys, tmp_path / "ref.py", tmp_path / "cand.py", "--mode", "quick", "--seed", first["evaluation"]["replay"])
    assert again["witness"] == first["witness"] | {"replay": again["witness"]["replay"]}


def test_a_degenerate_op_is_not_judged_unless_the_person_knows(tmp_path, capsys):
    (tmp_path / "ref.py").write_text(
        "import torch\n\n\ndef one(x):\n    return torch.softmax(x, -1).sum(-1)\n\n\ndef get_inputs():\n    return [torch.randn(24, 40)]\n"
    )
    (tmp_path / "cand.py").write_text("import torch\n\n\ndef one(x):\n    return torch.ones(x.shape[0])\n")
    status, found = judged(capsys, tmp_path / "ref.py", tmp_path / "cand.py")
    assert status == 1 and found["verdict"] == "not_judged" and "degenerate" in found["reason"] and "--accept-degenerate" in found["reason"]
    assert found["qualification"]["degenerate"] and found["qualification"]["advice"]
    status, found = judged(capsys, tmp_path / "ref.py", tmp_path / "cand.py", "--accept-degenerate", "--mode", "quick")
    assert status == 0 and found["verdict"] == "right"


def test_misuse_is_one_line(files, capsys):
    for arguments in (["nowhere.py", files[1]], [files[0], "nowhere.py"], [files[0], files[1], "--set", "BLOCK"], [*files, "--seed", "-3"]):
        assert main(["judge", *map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert said.startswith("workbench: ") and said.count("\n") == 1


def test_an_op_that_changes_its_input(nursery):
    source = "import torch\ndef step(x, g):\n    x.sub_(g, alpha=0.5)\n"
    task = make_task("step", source, [spec("x", (24, 40)), spec("g", (24, 40))], [((24, 40), "float32")])
    judge = Judge(dataclasses.replace(task, changes=("x",)), device="cpu", nursery=nursery)
    cases = {
        "def step(x, g):\n    x.copy_(x - 0.5 * g)\n": Verdict.RIGHT,
        "def step(x, g):\n    return x - 0.5 * g\n": Verdict.WRONG,
        "def step(x, g):\n    x.sub_(0.5 * g)\n    g.zero_()\n": Verdict.WRONG,
        "def step(x, g):\n    pass\n": Verdict.WRONG,
    }
    try:
        for body, verdict in cases.items():
            found = judge.evaluate(candidate(f"import torch\n{body}", "step"), {}, id="k1.0", mode="full")
            assert found.verdict is verdict, (body, found)
    finally:
        judge.close()


def test_a_view_is_allowed_where_the_reference_gives_one(nursery):
    source = "import torch\ndef turned(x):\n    return x.t(), x.sum(-1)\n"
    judge = Judge(
        make_task("turned", source, [spec("x", (24, 40))], [((40, 24), "float32"), ((24,), "float32")]), device="cpu", nursery=nursery
    )
    try:
        for body in ("x.t(), x.sum(-1)", "x.t().contiguous(), x.sum(-1)"):
            found = judge.evaluate(candidate(f"import torch\ndef turned(x):\n    return {body}\n", "turned"), {}, id="k1.0", mode="full")
            assert found.verdict is Verdict.RIGHT, found
            assert "returns the memory of an input" not in found.labels
    finally:
        judge.close()


STATEFUL = {
    "weights kept from the first call": (
        "class ModelNew(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(n))\n        self.kept = None\n"
        "    def forward(self, x):\n        if self.kept is None:\n            self.kept = self.scale.clone()\n"
        "        return x * self.kept\n",
        "after its parameters were changed in place",
    ),
    "zeros out of an empty result": (
        "class ModelNew(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(n))\n    def forward(self, x):\n        return torch.empty_like(x)\n",
        "never written",
    ),
    "the reference's own memory": (
        "class ModelNew(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(n))\n        self.out = None\n    def forward(self, x):\n"
        "        if self.out is None or self.out.shape != x.shape:\n            self.out = torch.empty_like(x)\n"
        "        return torch.mul(x, self.scale, out=self.out)\n",
        "they share memory",
    ),
    "zeros over its inputs": (
        "class ModelNew(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(n))\n    def forward(self, x):\n"
        "        out = x * self.scale\n        x.zero_()\n"
        "        return out\n",
        "changes its input x",
    ),
}


@pytest.mark.parametrize("case", STATEFUL)
def test_what_a_model_may_not_keep(nursery, case):
    source, words = STATEFUL[case]
    task = make_task("Model", MODEL, [spec("x", (24, 40))], [((24, 40), "float32")], format="model", init_args=(40,))
    judge = Judge(task, device="cpu", nursery=nursery)
    try:
        found = judge.evaluate(candidate(f"import torch\n{source}", "ModelNew"), {}, id="k1.0", mode="full")
        assert found.verdict is Verdict.WRONG and words in found.reason, found
    finally:
        judge.close()

"""Which ops a piece of code runs, how they are grouped, what they move, and starting a search from one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from workbench.capture import capture_call
from workbench.errors import MisuseError
from workbench.notebook.profile_ops import Profile, evolve_profiled, profile_code, profile_file
from workbench.notebook.profile_ops_regions import as_call

MODEL = """import torch
import torch.nn as nn
import torch.nn.functional as F

class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = RMSNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

def softmax(x):
    m = x.amax(-1, keepdim=True)
    e = (x - m).exp()
    return e / e.sum(-1, keepdim=True)

x = torch.randn(64, 128)
model = nn.Sequential(Block(128), Block(128))
with torch.no_grad():
    y = model(x)
    p = softmax(y)
z = torch.relu(p * 2 + 1).t()
z
"""


@pytest.fixture(scope="module")
def profile() -> Profile:
    return profile_code(MODEL, {"__name__": "__main__"}, target="cuda:90")


def row(profile, name):
    return next(region for region in profile.regions if region.name == name)


def test_calls_are_grouped_by_the_persons_own_functions_modules_and_lines(profile):
    assert {region.name for region in profile.regions} == {"RMSNorm", "Block", "softmax", "z = torch.relu(p * 2 + 1).t()"}
    norm = row(profile, "RMSNorm")
    assert norm.runs == 2, "both blocks' norms are one row"
    assert dict(norm.ops) == {"mul": 4, "pow": 2, "mean": 2, "add": 2, "rsqrt": 2}
    assert dict(row(profile, "Block").ops) == {"linear": 4, "gelu": 2, "add": 2}, "library modules belong to who calls them"
    assert row(profile, "softmax").where == "line 21"
    assert profile.shown.shape == (128, 64)


def test_floors_count_each_input_and_output_once(profile):
    tensor = 64 * 128 * 4
    soft = row(profile, "softmax")
    launch = profile.target.latency_us + profile.target.launch_us
    assert soft.floor_us - launch == pytest.approx(1e6 * 2 * tensor / profile.target.bandwidth, rel=0.2, abs=2e-3)
    assert row(profile, "RMSNorm").floor_us == pytest.approx(2 * (launch + 1e6 * (2 * tensor + 512) / profile.target.bandwidth), abs=2e-3)
    for region in profile.regions:
        assert 0 <= region.gain <= region.share <= 1
        assert region.headroom >= 1
    assert sum(region.share for region in profile.regions) == pytest.approx(1, abs=1e-3)
    assert list(profile.regions) == sorted(profile.regions, key=lambda region: -region.gain)


def test_large_products_are_bound_by_their_flops():
    found = profile_code("y = a @ b", {"a": torch.randn(512, 2048), "b": torch.randn(2048, 512)}, target="cuda:90")
    (region,) = found.regions
    assert region.time_us > 1e6 * 2 * 512 * 512 * 2048 / found.target.peak("tf32")


@pytest.mark.parametrize("name", ["RMSNorm", "softmax", "z = torch.relu(p * 2 + 1).t()", "Block"])
def test_every_row_can_be_captured_with_the_inputs_that_it_had(profile, name):
    op, args, kwargs = as_call(row(profile, name))
    captured = capture_call(op, args, kwargs, name="op")
    assert tuple(captured.task.inputs[0].shape) in ((64, 128),)
    assert captured.task.graph.nodes


def test_views_makers_and_code_of_libraries_are_no_ops():
    found = profile_code(
        "import torch\nx = torch.zeros(8, 8)\ny = x.t()[3:].unsqueeze(0)\ntorch.nn.init.normal_(x)\nd = torch.nn.Linear(8, 8)\n", {}
    )
    assert found.regions == ()
    assert "profile code that calls one" in str(found)


def test_memory_that_is_given_out_again_is_not_taken_for_the_same_tensor():
    source = "def step(x):\n    return x + 1\nfor _ in range(5):\n    y = step(torch.ones(1 << 16))\n"
    (region,) = profile_code(source, {"torch": torch}).regions
    assert region.runs == 5
    launch = 5 * (3.0)
    assert region.floor_us - launch == pytest.approx(1e6 * 5 * 2 * 4 * (1 << 16) / 4.3e12, rel=0.1)


def test_what_the_code_raises_comes_through_and_watching_ends():
    with pytest.raises(ZeroDivisionError):
        profile_code("import torch\ny = torch.ones(3) + 1\n1 / 0\n", {})
    torch.ones(2) + 1  # no mode is left behind


def test_a_closure_that_can_not_be_started_is_one_line():
    source = "def outer(k):\n    def inner(x):\n        return x * k\n    return inner(torch.ones(4))\nouter(2)\n"
    region = profile_code(source, {"torch": torch}).regions[0]
    with pytest.raises(MisuseError, match="define it at the top of the cell"):
        as_call(region)


def test_numbers_that_are_not_in_the_table(profile):
    with pytest.raises(MisuseError, match="has no op 9: choose 1 to 4"):
        profile[9]


def test_hostile_names_are_escaped(profile):
    source = "z = torch.relu(x) # <script>alert(1)</script>"
    found = profile_code(source, {"torch": torch, "x": torch.ones(4)})
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_a_search_starts_from_the_first_row(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_STORE", str(tmp_path / "store"))
    found = profile_code(MODEL, {"__name__": "__main__"}, target="cuda:90")
    number = [region.name for region in found.regions].index("softmax") + 1
    run = evolve_profiled(number, device="cpu")
    try:
        assert run.task.name == "softmax"
        assert tuple(run.task.inputs[0].shape) == (64, 128)
        assert run.task.target == "cuda:90"
    finally:
        run.close()


def test_a_reference_file_is_called_and_a_script_run(tmp_path):
    reference = tmp_path / "ref.py"
    reference.write_text("import torch\ndef f(x):\n    return x.exp() + 1\ndef get_inputs():\n    return [torch.ones(4, 4)]\n")
    assert [region.name for region in profile_file(reference).regions] == ["f"]
    model = tmp_path / "model.py"
    model.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self, k):\n        super().__init__()\n        self.k = k\n"
        "    def forward(self, x):\n        return x * self.k\n"
        "def get_inputs():\n    return [torch.ones(4)]\ndef get_init_inputs():\n    return [3]\n"
    )
    assert [region.name for region in profile_file(model).regions] == ["Model"]
    with pytest.raises(MisuseError, match="not Python: line 1"):
        (tmp_path / "bad.py").write_text("def (")
        profile_file(tmp_path / "bad.py")
    with pytest.raises(MisuseError, match="give the path of a script"):
        profile_file(tmp_path / "none.py")


def test_the_command_line_prints_one_object(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("SIZE = 8\n")
    script.write_text(
        "import sys\nimport torch\nfrom beside import SIZE\nprint('said', len(sys.argv))\ny = torch.ones(SIZE).exp()\nsys.exit(3)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "workbench", "profile", str(script), "--json"], capture_output=True, text=True, timeout=120, check=True
    )
    found = json.loads(ran.stdout)
    assert found["ops"][0]["name"] == "y = torch.ones(SIZE).exp()"
    assert found["measured"] is torch.cuda.is_available()
    assert "said 1" in ran.stderr

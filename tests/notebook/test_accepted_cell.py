"""The text of an accepted cell, run where there is nothing but torch and triton."""

from __future__ import annotations

import ast
import re

import pytest
import torch
from conftest import CELL, SCALED, SOFTMAX, candidate_of, evaluation_of

from workbench.build.tune import choose
from workbench.candidate import Verdict
from workbench.capture import capture_call
from workbench.errors import AcceptRefusedError, MisuseError
from workbench.notebook import cell
from workbench.notebook.verify import as_candidate, take_apart

NAMES = """
suffix = next(name for name in vars(cell) if name.startswith("fits_")).removeprefix("fits_")
run, op, fits = (getattr(cell, f"{name}_{suffix}") for name in ("run", "op", "fits"))
"""


def softmax(x, dim=-1):
    return torch.softmax(x, dim)


SOFTMAX_CELL = CELL


def written(op, args, source, entry, cell_source="", **fields) -> tuple[str, object]:
    captured = capture_call(op, args)
    candidate = candidate_of(source, entry)
    parameters = {"WARPS": 8} if "TUNE" in source else {}
    return cell.write_cell(
        captured.task, candidate, parameters, evaluation_of(candidate, **fields), "softmax-1", cell_source=cell_source
    ), captured


@pytest.fixture(scope="module")
def softmax_cell() -> str:
    return written(softmax, (torch.randn(8, 100),), SOFTMAX, "softmax", SOFTMAX_CELL)[0]


def test_one_line_says_where_it_comes_from(softmax_cell):
    first, *rest = softmax_cell.split("\n")
    assert first.startswith("# kernel-workbench: op='softmax' run='softmax-1' kernel='k7' verdict='right'")
    assert "12.3 µs modelled for cuda:90" in first
    assert not any(line.startswith("# kernel-workbench: ") for line in rest)
    assert "TUNE" not in softmax_cell
    assert "workbench import" not in softmax_cell
    assert rest[0] == "from __future__ import annotations"


def test_without_a_gpu_it_says_so_once_and_computes_right(softmax_cell, bare):
    seen = bare(
        softmax_cell,
        """
        x = torch.randn(8, 100)
        found["same"] = torch.equal(cell.softmax(x), torch.softmax(x, -1))
        found["keyword"] = torch.equal(cell.softmax(x, dim=0), torch.softmax(x, 0))
        found["half"] = cell.softmax(x.half()).dtype == torch.float16
        found["rank"] = list(cell.softmax(torch.randn(2, 3, 4)).shape)
        """,
        interpret=False,
    )
    assert seen.output.count("fallback: no GPU") == 1
    assert seen.same and seen.keyword and seen.half
    assert seen.rank == [2, 3, 4]


@pytest.fixture(scope="module")
def seen(softmax_cell, run_bare):
    """One process for everything that is asked of the kernel, in the interpreter."""
    return run_bare(
        softmax_cell,
        NAMES
        + """
import importlib, warnings
cell = importlib.reload(importlib.reload(cell))
"""
        + NAMES
        + """
x = torch.randn(8, 100)
weights = torch.randn(8, 100)
found["right"] = torch.allclose(run(x), torch.softmax(x, -1), atol=1e-6)

x.requires_grad_()
(op(x) * weights).sum().backward()
got, x.grad = x.grad, None
(torch.softmax(x, -1) * weights).sum().backward()
found["gradient"] = torch.allclose(got, x.grad, atol=1e-6)
first, = torch.autograd.grad((op(x) * weights).sum(), x, create_graph=True)
second, = torch.autograd.grad(first.square().sum(), x)
first, = torch.autograd.grad((torch.softmax(x, -1) * weights).sum(), x, create_graph=True)
expected, = torch.autograd.grad(first.square().sum(), x)
found["second"] = torch.allclose(second, expected, atol=1e-5)
torch.library.opcheck(op, (torch.randn(8, 100, requires_grad=True),))

long = torch.randn(2, 5000)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found["long"] = torch.equal(run(long), torch.softmax(long, -1))
found["said"] = [str(one.message) for one in caught]

class Cuda(torch.Tensor):
    device = torch.device("cuda", 0)

devices = getattr(cell, f"DEVICES_{suffix}")
devices.append(0)
on_gpu = lambda *shape, **kwargs: torch.randn(*shape, **kwargs).as_subclass(Cuda)
cases = {
    "same": (on_gpu(8, 100), -1), "other shape": (on_gpu(3, 7), -1), "dtype": (on_gpu(8, 100, dtype=torch.float64), -1),
    "rank": (on_gpu(8, 100, 1), -1), "layout": (on_gpu(100, 8).t(), -1), "empty": (on_gpu(0, 8), -1),
    "value": (on_gpu(8, 100), 0), "cpu": (torch.randn(8, 100), -1), "no tensor": ([1.0], -1),
}
found["taken"] = [name for name, arguments in cases.items() if fits(*arguments)]
with torch.autocast("cuda", enabled=False), torch.autocast("cpu"):
    found["autocast_cpu"] = fits(*cases["same"])
devices.clear()
found["no_device"] = fits(*cases["same"])

x.grad = None
compiled = torch.compile(cell.softmax, fullgraph=True, backend="aot_eager")
compiled(x).square().sum().backward()
fallback, x.grad = x.grad, None
setattr(cell, f"fits_{suffix}", lambda x, dim: True)
torch._dynamo.reset()
compiled = torch.compile(cell.softmax, fullgraph=True, backend="aot_eager")
y = compiled(x)
y.square().sum().backward()
found["compiled"] = torch.allclose(y, torch.softmax(x, -1), atol=1e-6)
found["compiled_gradient"] = torch.allclose(fallback, x.grad, atol=1e-6)
""",
    )


def test_the_kernel_itself_computes_right_though_the_cell_ran_three_times(seen):
    assert seen.right


def test_it_has_the_references_gradients_of_first_and_second_order(seen):
    assert seen.gradient
    assert seen.second


def test_it_compiles_whole_with_and_without_the_kernel(seen):
    assert seen.compiled
    assert seen.compiled_gradient


def test_the_guard_takes_what_was_judged_and_nothing_else(seen):
    assert seen.taken == ["same", "other shape"]
    assert seen.autocast_cpu
    assert not seen.no_device


def test_a_shape_that_the_launcher_refuses_falls_back_and_says_so(seen):
    assert seen.long
    assert seen.said == ["softmax: fallback: rows of at most 4096"]


def test_judged_on_one_shape_only_it_is_held_to_that_shape():
    text, _ = written(softmax, (torch.randn(8, 100),), SOFTMAX, "softmax", input_sets=("small", "small, sorted"))
    assert "x.shape == (8, 100)" in text


def test_two_accepted_cells_never_meet(softmax_cell):
    other, _ = written(
        softmax, (torch.randn(8, 100),), SOFTMAX.replace("[4, 8]", "[8, 16]").replace("at most", "up to"), "softmax", SOFTMAX_CELL
    )
    names = [set(re.findall(r"^(?:def |class )?([A-Za-z]\w*)(?: =|\()", text, re.MULTILINE)) for text in (softmax_cell, other)]
    assert names[0] & names[1] == {"softmax"}


weight = torch.randn(100)


def scaled(x):
    return x * weight


def test_what_the_op_reads_from_the_notebook_is_read_at_each_call(bare):
    text, _ = written(scaled, (torch.randn(8, 100),), SCALED, "scaled", "def scaled(x):\n    return x * weight\n")
    assert "def scaled(x, *, weight=None):" in text
    seen = bare(
        text,
        """
        x = torch.randn(8, 100)
        cell.weight = torch.ones(100)
        found["ones"] = torch.equal(cell.scaled(x), x)
        cell.weight = torch.full((100,), 2.0)
        found["twos"] = torch.equal(cell.scaled(x), 2 * x)
        found["given"] = torch.equal(cell.scaled(x, weight=torch.zeros(100)), 0 * x)
        """
        + NAMES.replace("\n", "\n        ")
        + """
        w = torch.randn(100, requires_grad=True)
        found["right"] = torch.allclose(run(x, w.detach()), x * w)
        op(x, w).sum().backward()
        found["gradient"] = torch.allclose(w.grad, x.sum(0), atol=1e-5)
        """,
    )
    assert seen.ones and seen.twos and seen.given and seen.right and seen.gradient


def test_results_come_back_in_the_references_own_structure(bare):
    def moments(x):
        return {"mean": x.mean(-1), "rest": [x.var(-1, correction=0), None]}

    source = "def moments(x):\n    return [x.mean(-1), x.var(-1, correction=0)]\n"
    text, _ = written(moments, (torch.randn(8, 100),), source, "moments", "def moments(x):\n    ...\n")
    seen = bare(
        text,
        NAMES
        + """
setattr(cell, f"fits_{suffix}", lambda x: True)
x = torch.randn(8, 100)
out = cell.moments(x)
found["keys"] = [list(out), type(out["rest"]).__name__, out["rest"][1]]
found["right"] = torch.allclose(out["rest"][0], x.var(-1, correction=0))
""",
    )
    assert seen.keys == [["mean", "rest"], "list", None]
    assert seen.right


def test_an_op_that_returns_its_input_is_refused_in_one_line():
    def twice(x):
        return x, x + x

    with pytest.raises(MisuseError, match="returns an input or a view of one") as caught:
        written(twice, (torch.randn(8),), "def twice(x):\n    return x, x + x\n", "twice")
    assert "\n" not in str(caught.value)


def test_a_module_is_wrapped_and_shares_its_parameters(bare):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())
    captured = capture_call(net, (torch.randn(4, 16),), name="net")
    source = "import torch\n\ndef net(input, _0_weight, _0_bias):\n    return torch.relu(torch.addmm(_0_bias, input, _0_weight.t()))\n"
    names = [spec.name for spec in captured.task.inputs]
    source = (
        source.replace("input, _0_weight, _0_bias", ", ".join(names))
        .replace("_0_bias", names[2])
        .replace("_0_weight", names[1])
        .replace("input", names[0])
    )
    candidate = candidate_of(source, "net")
    text = cell.write_cell(captured.task, candidate, {}, evaluation_of(candidate), "net-1")
    assert "class FastNet(torch.nn.Module):" in text
    seen = bare(
        text,
        NAMES
        + """
net = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())
fast = cell.FastNet(net)
x = torch.randn(4, 16)
found["fallback"] = torch.equal(fast(x), net(x))
found["other"] = torch.equal(fast(torch.ones(2, 3, 16)), net(torch.ones(2, 3, 16)))
setattr(cell, f"fits_{suffix}", lambda *_: True)
found["kernel"] = torch.allclose(fast(x), net(x), atol=1e-6)
fast(x).sum().backward()
got = net[0].weight.grad.clone()
net.zero_grad()
net(x).sum().backward()
found["gradient"] = torch.allclose(got, net[0].weight.grad, atol=1e-6)
found["state"] = sorted(fast.state_dict()) == sorted("module." + name for name in net.state_dict())
found["compiled"] = torch.allclose(torch.compile(fast, fullgraph=True, backend="eager")(x), net(x), atol=1e-6)
""",
    )
    assert seen.fallback and seen.other and seen.kernel and seen.gradient and seen.state and seen.compiled


MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(4, 32)]


def get_init_inputs():
    return [32]
"""


def test_a_kernelbench_model_keeps_its_class_and_state(bare, tmp_path):
    from workbench.capture import capture_file

    (tmp_path / "reference.py").write_text(MODEL)
    captured = capture_file(tmp_path / "reference.py")
    candidate = candidate_of(MODEL.split("def get_inputs")[0].replace("Model", "ModelNew"), "ModelNew")
    text = cell.write_cell(captured.task, candidate, {}, evaluation_of(candidate), "model-1")
    seen = bare(
        text,
        NAMES.replace('("run", "op", "fits")', '("fits", "fits", "fits")')
        + """
import copy
model = cell.ModelNew(32)
x = torch.randn(4, 32)
found["names"] = list(model.state_dict())
found["fallback"] = torch.equal(model(x), x * model.weight)
model.load_state_dict({"weight": torch.full((32,), 3.0)})
found["loaded"] = torch.equal(copy.deepcopy(model)(x), 3 * x)
setattr(cell, f"fits_{suffix}", lambda *_: True)
with torch.no_grad():
    found["kernel"] = torch.equal(model(x), 3 * x)
model(x).sum().backward()
found["gradient"] = torch.allclose(model.weight.grad, x.sum(0), atol=1e-5)
""",
    )
    assert seen.names == ["weight"]
    assert seen.fallback and seen.loaded and seen.kernel and seen.gradient


def test_the_kernel_can_be_taken_out_again_as_it_was(softmax_cell):
    found = take_apart("x = 1\n" + softmax_cell + "\nsoftmax(x)\n")
    assert cell.code_hash(found.body) == found.fields["code"]
    candidate = as_candidate(capture_call(softmax, (torch.randn(8, 100),)).task, found)

    def body(source: str) -> list[str]:
        return [ast.dump(node) for node in ast.parse(source).body if not isinstance(node, ast.ImportFrom)]

    assert body(candidate.source) == body(choose(SOFTMAX, {"WARPS": 8}))


def test_a_changed_kernel_is_not_the_accepted_one(softmax_cell):
    changed = take_apart(softmax_cell.replace("tl.exp(values", "tl.exp(1.01 * values"))
    assert cell.code_hash(changed.body) != changed.fields["code"]
    with pytest.raises(AcceptRefusedError, match="not whole"):
        take_apart(softmax_cell.replace(cell.REFERENCE, ""))
    with pytest.raises(MisuseError, match="no accepted kernel"):
        take_apart("x = 1\n")


def test_the_verdict_stands_in_the_text():
    text, _ = written(softmax, (torch.randn(8, 100),), SOFTMAX, "softmax", verdict=Verdict.NOT_JUDGED, timing=None, judged_by="")
    assert "verdict='not_judged' judged_by='nobody' time='none'" in text.split("\n")[0]

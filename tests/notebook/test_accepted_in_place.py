"""An accepted op that works in place: the same tensor changes, and the same comes back."""

from __future__ import annotations

import pytest
import torch
from conftest import candidate_of, evaluation_of

from workbench.capture import capture_call, capture_file
from workbench.errors import MisuseError
from workbench.notebook import cell

FITS = """
suffix = next(name for name in vars(cell) if name.startswith("fits_")).removeprefix("fits_")
fits = getattr(cell, f"fits_{suffix}")
setattr(cell, f"fits_{suffix}", lambda *_: True)
"""

STEP = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(w, g, y, n, lr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    new = tl.load(w + at, mask=at < n) - lr * tl.load(g + at, mask=at < n)
    tl.store(w + at, new, mask=at < n)
    tl.store(y + at, 2 * new, mask=at < n)


def step(w, g, lr):
    if not (w.is_contiguous() and g.is_contiguous()):
        raise ValueError("contiguous tensors only")
    y = torch.empty_like(w)
    kernel[(triton.cdiv(w.numel(), 64),)](w, g, y, w.numel(), lr, BLOCK=64)
    return w, y
"""


def step(w, g, lr=0.5):
    w.sub_(lr * g)
    return w, w * 2


def write(op, args, source, name, **options):
    captured = capture_call(op, args, **options)
    candidate = candidate_of(source, name)
    return captured.task, cell.write_cell(captured.task, candidate, {}, evaluation_of(candidate), f"{name}-1")


@pytest.fixture(scope="module")
def seen(run_bare):
    _, text = write(step, (torch.randn(100), torch.randn(100)), STEP, "step")
    return run_bare(
        text,
        FITS
        + """
def make():
    torch.manual_seed(0)
    return torch.randn(100), torch.randn(100)

w, g = make()
right = w - 0.5 * g
got = cell.step(w, g)
found["same tensor"] = got[0] is w and len(got) == 2 and type(got).__name__
found["changed"] = torch.allclose(w, right) and torch.allclose(got[1], 2 * right)
found["others"] = torch.equal(g, make()[1])
found["schema"] = str(getattr(torch.ops.kernel_workbench, f"step_{suffix}").default._schema)

# Autograd is told of the change: a product that has kept the old values can't be gone through any more.
w, g = make()
factor = torch.ones(100, requires_grad=True)
product = (factor * w).sum()
with torch.no_grad():
    cell.step(w, g)
try:
    product.backward()
    found["stale"] = "a silent wrong gradient"
except RuntimeError as error:
    found["stale"] = str(error)

setattr(cell, f"fits_{suffix}", fits)
w, g = make()
w.requires_grad_()
found["takes a gradient"] = float(cell.step(w * 1, g)[1].sum()) == float((2 * right).sum())
found["own memory"] = "untyped_storage" in open(cell.__file__).read()
setattr(cell, f"fits_{suffix}", lambda *_: True)

# Through the compiler, as one op that is known to write.
def twice(w, g):
    cell.step(w, g)
    return cell.step(w, g)[1] + w

w, g = make()
made = torch.compile(twice, fullgraph=True, backend="aot_eager")(w, g)
last = right - 0.5 * g
found["compiled"] = torch.allclose(w, last, atol=1e-6) and torch.allclose(made, 3 * last, atol=1e-6)
""",
    )


def test_the_callers_tensor_is_changed_and_comes_back_itself(seen):
    assert vars(seen)["same tensor"] == "tuple" and seen.changed and seen.others
    assert "(a0!) w, Tensor g) -> Tensor" in seen.schema


def test_autograd_knows_of_the_change(seen):
    assert "modified by an inplace operation" in seen.stale
    assert vars(seen)["takes a gradient"]


def test_the_compiler_takes_it_for_what_it_is(seen):
    assert seen.compiled


def test_the_guard_wants_a_gradient_to_go_to_the_reference_and_each_changed_tensor_to_have_memory_of_its_own():
    _, text = write(step, (torch.randn(100), torch.randn(100)), STEP, "step")
    assert "w.untyped_storage().data_ptr() != g.untyped_storage().data_ptr()" in text
    assert "and not (torch.is_grad_enabled() and (w.requires_grad or g.requires_grad))" in text
    assert "register_autograd" not in text


def test_an_op_that_returns_nothing(bare):
    def fill(x, y):
        x.copy_(y * 2)

    source = "def fill(x, y):\n    x[:] = y * 2\n"
    _, text = write(fill, (torch.randn(40), torch.randn(40)), source, "fill")
    seen = bare(
        text,
        FITS
        + """
x, y = torch.zeros(40), torch.arange(40.0)
found["nothing"] = cell.fill(x, y) is None
found["changed"] = torch.equal(x, 2 * y)
x = torch.zeros(40)
torch.compile(cell.fill, fullgraph=True, backend="aot_eager")(x, y)
found["compiled"] = torch.equal(x, 2 * y)
""",
        interpret=False,
    )
    assert seen.nothing and seen.changed and seen.compiled


def test_a_view_of_what_it_changes_is_refused_in_one_line():
    def part(x):
        x.mul_(2)
        return x[1:]

    with pytest.raises(MisuseError, match="a view of one") as caught:
        write(part, (torch.randn(8),), "def part(x):\n    x.mul_(2)\n    return x[1:]\n", "part")
    assert "\n" not in str(caught.value)


def test_a_module_whose_first_layer_works_in_place(bare):
    net = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(4, 4))
    with torch.no_grad():
        captured = capture_call(net, (torch.randn(2, 4),), name="net")
    names = [spec.name for spec in captured.task.inputs]
    assert len(captured.task.changes) == 1
    source = (
        f"import torch\n\ndef net({', '.join(names)}):\n    {names[0]}.clamp_(min=0)\n"
        f"    return torch.addmm({names[2]}, {names[0]}, {names[1]}.t())\n"
    )
    candidate = candidate_of(source, "net")
    text = cell.write_cell(captured.task, candidate, {}, evaluation_of(candidate), "net-1")
    seen = bare(
        text,
        FITS
        + """
net = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(4, 4))
x = torch.randn(2, 4)
with torch.no_grad():
    one, other = x.clone(), x.clone()
    found["right"] = torch.allclose(cell.FastNet(net)(one), net(other), atol=1e-6)
    found["changed"] = torch.equal(one, other)
""",
        interpret=False,
    )
    assert seen.right and seen.changed


MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        x.mul_(self.weight)
        return x, x.sum()


def get_inputs():
    return [torch.randn(4, 32)]


def get_init_inputs():
    return [32]
"""


def test_a_kernelbench_model_gives_the_callers_tensor_back_even_where_the_kernel_returns_a_copy(bare, tmp_path):
    (tmp_path / "reference.py").write_text(MODEL)
    task = capture_file(tmp_path / "reference.py").task
    assert task.changes == ("x",)
    source = MODEL.split("def get_inputs")[0].replace("Model", "ModelNew").replace("return x, x.sum()", "return [x.clone(), x.sum()]")
    candidate = candidate_of(source, "ModelNew")
    text = cell.write_cell(task, candidate, {}, evaluation_of(candidate), "model-1")
    seen = bare(
        text,
        FITS
        + """
model = cell.ModelNew(32)
x = torch.randn(4, 32)
right = x * model.weight
before = x._version
with torch.no_grad():
    got = model(x)
found["same tensor"] = type(got).__name__ == "tuple" and got[0] is x
found["changed"] = torch.equal(x, right) and torch.equal(got[1], right.sum()) and x._version > before
""",
        interpret=False,
    )
    assert vars(seen)["same tensor"] and seen.changed

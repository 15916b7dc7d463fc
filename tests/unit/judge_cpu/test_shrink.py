"""Shapes shrink where the op allows it, and nowhere else. Tasks are captured from live calls, as in a notebook."""

import math

import pytest
import torch
import torch.nn.functional as F

from workbench.capture import capture_call
from workbench.inputs import make_inputs
from workbench.judge.emulation.shrink import LARGE, Unshrinkable, resized, shape_sets
from workbench.task import InputSpec, Task, Values, Work


def softmax(x):
    return torch.softmax(x, -1)


def rmsnorm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def matmul(a, b):
    return torch.relu(a @ b)


def cross_entropy(x, target):
    return F.cross_entropy(x, target)


def embedding(index, table):
    return F.embedding(index, table)


def heads(x):
    b, t, c = x.shape
    return x.view(b, t, c // 64, 64).transpose(1, 2).softmax(-1)


def named(x):
    return x.sum(-1) / 8192


def sized(x, n):
    return x[:, : n // 2] * 2 + n


def fixed(x, w):
    return x.view(1024, 2048) @ w.view(2048, 1024)


def small(x):
    return x.cumsum(-1)


def task_of(function, *args) -> Task:
    # Few real values are needed: the spec is what counts, so large tensors are expanded from one row where that is allowed.
    return capture_call(function, args, {}).task


def shapes(task):
    return [tuple(spec.shape for spec in found.inputs if spec.is_tensor) for found in shape_sets(task)]


def check(task):
    """Every set runs, is small, and gives outputs without NaN."""
    from workbench.capture.references import load_reference

    reference = load_reference(task, device="cpu", seed=0)
    found = shape_sets(task)
    assert found and len({str(item.inputs) for item in found}) == len(found)
    for item in found:
        assert all(math.prod(spec.shape) <= LARGE for spec in item.inputs)
        with torch.no_grad():
            outputs = reference(*make_inputs(item.inputs, 1))
        assert all(not output.isnan().any() for output in outputs)
    return found


def test_a_row_wise_op():
    task = task_of(softmax, torch.randn(4096, 8192))
    found = check(task)
    odd, aligned, long, *_ = (item.inputs[0].shape for item in found)
    assert odd[0] > 1 and odd[1] % 2 == 1 and 128 < odd[1] < 8192
    assert aligned[0] & (aligned[0] - 1) == 0 and aligned[1] & (aligned[1] - 1) == 0 and aligned[1] >= 128
    assert long[1] > 4096 and long[0] <= 15
    assert [item.name.rsplit(" ", 1)[0] for item in found] == ["odd sizes", "aligned sizes", "a long axis", "small sizes"]
    assert all(math.prod(shape) <= 1 << 16 for shape in (odd, aligned, long))


def test_equal_sizes_change_together():
    for x, w in shapes(task_of(rmsnorm, torch.randn(512, 2048, dtype=torch.bfloat16), torch.rand(2048))):
        assert x[1] == w[0]


def test_a_matrix_product_keeps_its_inner_axis():
    found = shapes(task_of(matmul, torch.randn(512, 1024), torch.randn(1024, 2048)))
    assert all(a[1] == b[0] for a, b in found)
    odd = found[0]
    assert len({odd[0][0], odd[0][1], odd[1][1]}) == 3  # different sizes, so that swapped strides show


def test_targets_stay_within_their_classes():
    task = task_of(cross_entropy, torch.randn(256, 32000), torch.randint(0, 32000, (256,)))
    for item in check(task):
        logits, target = item.inputs
        assert target.values.args["hi"] <= logits.shape[1] and target.shape[0] == logits.shape[0]
        assert target.values.args["hi"] > 0.8 * logits.shape[1]


def test_an_index_stays_within_its_table():
    check(task_of(embedding, torch.randint(0, 30000, (8, 512)), torch.randn(30522, 256)))


def test_an_axis_that_is_cut_into_heads_keeps_its_step():
    found = shapes(task_of(heads, torch.randn(8, 512, 1024)))
    assert all(x[2] % 64 == 0 and x[1] < 512 for (x,) in found)
    assert found[0][0][2] == 192


def test_a_size_that_the_reference_names_is_fixed():
    found = shapes(task_of(named, torch.randn(4096, 8192)))
    assert all(x[1] == 8192 and x[0] < 4096 for (x,) in found)


def test_a_number_that_equals_a_size_goes_with_it():
    for item in check(task_of(sized, torch.randn(512, 4096), 4096)):
        assert item.inputs[1].values.value == item.inputs[0].shape[1]


def test_nothing_is_free():
    with pytest.raises(Unshrinkable, match="runs at its own sizes only"):
        shape_sets(task_of(fixed, torch.randn(2048, 1024), torch.randn(2097152)))


def test_small_tasks_are_judged_at_their_own_shapes_first():
    first, *others = shape_sets(task_of(small, torch.randn(16, 100)))
    assert first.name == "the task's shapes" and first.inputs[0].shape == (16, 100)
    assert others[0].inputs[0].shape == (16, 101)


def test_a_window_is_part_of_the_op():
    def conv(x, w):
        return F.conv2d(x, w, padding=1)

    for x, w in shapes(task_of(conv, torch.randn(16, 32, 64, 64), torch.randn(64, 32, 3, 3))):
        assert w[2:] == (3, 3) and x[1] == w[1]


def test_a_model_keeps_what_it_was_constructed_with():
    text = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, 96)
    def forward(self, x):
        return torch.relu(self.linear(x))

batch = 4096

def get_inputs():
    return [torch.randn(batch, 512)]

def get_init_inputs():
    return [512]
"""
    spec = InputSpec("x", (4096, 512), "float32", (512, 1), Values("normal"))
    task = Task("linear", text, "Model", (spec,), (), Work(1, 1), format="model", init_args=(512,))
    found = shapes(task)
    assert all(x[1] == 512 and x[0] <= 256 for (x,) in found)


def test_layout_and_expansion_are_kept():
    transposed = InputSpec("x", (4096, 1024), "float32", (1, 4096), Values("normal"))
    repeated = InputSpec("m", (4096, 1024), "float32", (0, 1), Values("normal"))
    padded = InputSpec("p", (4096, 1024), "float32", (2048, 1), Values("normal"))
    x, m, p = resized((transposed, repeated, padded), {4096: 131, 1024: 259})
    assert (x.shape, x.strides) == ((131, 259), (1, 131))
    assert (m.shape, m.strides) == ((131, 259), (0, 1))
    assert (p.shape, p.strides) == ((131, 259), (259, 1))


def test_a_huge_op_needs_no_huge_memory():
    specs = (InputSpec("x", (112, 64, 512, 512), "float32", (64 * 512 * 512, 512 * 512, 512, 1), Values("uniform")),)
    text = "import torch\ndef f(x):\n    return x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5)\n"
    found = shapes(Task("rms", text, "f", specs, (), Work(1, 1)))
    assert len(found) >= 3 and all(x[2] == x[3] for (x,) in found)

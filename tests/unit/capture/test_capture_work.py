"""The graph, and the least work counted on it."""

from __future__ import annotations

import pytest
import torch
from capturing import capture, notebook

from workbench.capture import capture_call
from workbench.graph import Node


def test_graph_is_encoded_as_data() -> None:
    captured = capture(
        "def f(x, w, k): return (x @ w).softmax(-1).sum(1, dtype=torch.float64) * k\nf(torch.randn(4, 8), torch.randn(8, 6), 3)"
    )
    graph = captured.task.graph
    assert graph.nodes == (
        Node("mm", "aten.mm.default", ({"ref": "x"}, {"ref": "w"}), {}, (4, 6), "float32"),
        Node("_softmax", "aten._softmax.default", ({"ref": "mm"}, -1, False), {}, (4, 6), "float32"),
        Node("sum_1", "aten.sum.dim_IntList", ({"ref": "_softmax"}, (1,)), {"dtype": "float64"}, (4,), "float64"),
        Node("mul", "aten.mul.Tensor", ({"ref": "sum_1"}, 3), {}, (4,), "float64"),
    )
    assert graph.outputs == ("mul",)
    assert [node.name for node in graph.users("mm")] == ["_softmax"]


def test_one_tensor_passed_twice_stays_two_inputs() -> None:
    graph = capture("def f(q, k): return q @ k.t()\nq = torch.randn(4, 8)\nf(q, q)").task.graph
    assert set(graph.nodes[0].refs()) | set(graph.nodes[1].refs()) == {"q", "k", "t"}


def test_ops_in_place_are_traced_without_effects() -> None:
    graph = capture("def f(x):\n    y = x - 1\n    y.mul_(2).relu_()\n    return y\nf(torch.randn(4))").task.graph
    assert graph.ops() == ("sub", "mul", "relu")


def test_no_graph_where_a_value_is_read_on_the_host() -> None:
    captured = capture("def f(x): return x * 2 if x.sum().item() > 0 else -x\nf(torch.ones(4))")
    assert captured.task.graph.nodes == ()
    assert any("reads a value on the host" in note for note in captured.notes)
    assert captured.task.work.bytes == 32


WORK = {
    "pointwise": ("def f(x): return x.exp() + 1\nf(torch.randn(10, 10))", 800, 900, 0),
    "reduction": ("def f(x): return x.sum(-1)\nf(torch.randn(10, 10))", 440, 100, 0),
    "matmul": ("def f(a, b): return a @ b\nf(torch.randn(4, 8), torch.randn(8, 6))", 4 * (32 + 48 + 24), 384, 384),
    "matmul and bias": ("net = nn.Linear(8, 6)\nnet(torch.randn(4, 8))", 4 * (32 + 48 + 6 + 24), 384, 384),
    "an input that isn't read": ("def f(x, y): return x * 2\nf(torch.randn(10), torch.randn(1000))", 80, 10, 0),
    "an input that is read twice": ("def f(x): return x.exp() / x.sum()\nf(torch.randn(10))", 80, 100, 0),
    "expanded": ("def f(x, b): return x + b\nf(torch.randn(10, 10), torch.randn(10, 1).expand(10, 10))", 840, 100, 0),
    "rows of a table": ("def f(i, t): return F.embedding(i, t)\nf(torch.randint(9, (5,)), torch.randn(1000, 8))", 40 + 160 + 160, 0, 0),
    "a small table": ("def f(i, t): return F.embedding(i, t)\nf(torch.randint(2, (50,)), torch.randn(2, 8))", 400 + 64 + 1600, 0, 0),
    "a slice": ("def f(x): return x[:, :2] * 2\nf(torch.randn(10, 100))", 160, 20, 0),
    "both halves": ("def f(x): return torch.cat([x[:, 2:], x[:, :2]], 1)\nf(torch.randn(10, 4))", 320, 0, 0),
    "attention": (
        "def f(q, k, v): return F.scaled_dot_product_attention(q, k, v)\nf(*(torch.randn(2, 3, 16, 8) for _ in 'qkv'))",
        4 * 4 * 768, 4 * 2 * 3 * 16 * 16 * 8, 4 * 2 * 3 * 16 * 16 * 8),
    "causal attention": (
        "def f(q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=True)\nf(*(torch.randn(2, 3, 16, 8) for _ in 'qkv'))",
        4 * 4 * 768, 2 * 2 * 3 * 16 * 16 * 8, 2 * 2 * 3 * 16 * 16 * 8),
    "convolution": (
        "def f(x, w): return F.conv2d(x, w)\nf(torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3))",
        4 * (384 + 108 + 288), 2 * 288 * 27, 2 * 288 * 27),
}  # fmt: skip


@pytest.mark.parametrize(("cell", "nbytes", "flops", "matmul"), WORK.values(), ids=WORK)
def test_least_work(cell: str, nbytes: int, flops: int, matmul: int) -> None:
    work = capture(cell).task.work
    assert (work.bytes, work.flops, work.matmul_flops) == (nbytes, flops, matmul)
    assert work.matmul_dtype == ("float32" if matmul else "")


def test_dtype_of_products_is_the_operands() -> None:
    work = capture("def f(a, b): return (a @ b).float()\nf(torch.randn(4, 8).bfloat16(), torch.randn(8, 6).bfloat16())").task.work
    assert work.matmul_dtype == "bfloat16"


def test_precision_of_products_is_recorded() -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert capture("def f(a): return a @ a\nf(torch.randn(4, 4))").task.matmul_precision == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_whether_convolutions_take_tf32_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = "def f(x, w): return F.conv2d(x, w)\nf(torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3))"
    for allowed in (True, False):
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", allowed)
        task = capture(cell).task
        assert task.convolution_tf32 is task.tf32 is allowed
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    assert not capture("def f(a): return a @ a\nf(torch.randn(4, 4))").task.tf32


def test_outputs_are_flat_with_their_strides() -> None:
    outputs = capture_call(lambda x: {"a": x.t(), "b": [x.sum(), None, 3]}, (torch.randn(4, 6),), name="f").task.outputs
    assert [(output.shape, output.dtype, output.strides) for output in outputs] == [((6, 4), "float32", (1, 6)), ((), "float32", ())]


def test_tracing_computes_nothing() -> None:
    namespace = notebook(x=torch.randn(8, 1).expand(8, 1 << 20))
    captured = capture("def f(x): return x.sum(-1)\nf(x)", namespace)
    assert captured.task.graph.ops() == ("sum",)
    assert captured.task.work.bytes == 64

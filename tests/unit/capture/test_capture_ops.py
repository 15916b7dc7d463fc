"""Many ops, each captured from a cell, sent through JSON, rebuilt in an empty namespace and compared with the live op."""

# ruff: noqa: E501 - each cell of a table stays on its line

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from capturing import capture, notebook, round_trip

from workbench.capture import capture_call

CELLS = {
    "softmax": """
def softmax(x):
    m = x.max(-1, keepdim=True).values  # stable
    e = (x - m).exp()
    return e / e.sum(-1, keepdim=True)
y = softmax(torch.randn(6, 9))
""",
    "rmsnorm reads a weight": """
weight = torch.ones(9)
def rmsnorm(x, eps=1e-6):
    '''Root mean square norm.'''
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
rmsnorm(torch.randn(6, 9))
""",
    "gelu times y": "def f(x, y): return F.gelu(x) * y\n_ = f(torch.randn(6, 9), torch.randn(6, 9))",
    "matmul bias relu": """
def linear_relu(x, w, b):
    return torch.relu(x @ w + b)
out = linear_relu(torch.randn(4, 8), torch.randn(8, 5), torch.zeros(5))
""",
    "cross entropy": """
def loss(logits, target): return F.cross_entropy(logits, target)
l = loss(torch.randn(16, 10), torch.randint(0, 10, (16,)))
""",
    "layer norm": "def f(x, w, b): return F.layer_norm(x, (9,), w, b)\nf(torch.randn(6, 9), torch.ones(9), torch.zeros(9))",
    "attention": """
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
q = torch.randn(2, 3, 8, 4)
attention(q, q, q)
""",
    "attention by hand with a mask": """
import math
mask = torch.full((8, 8), float("-inf")).triu(1)
def attention(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask.clamp(min=-1e4)
    return scores.softmax(-1) @ v
attention(*(torch.randn(2, 3, 8, 4) for _ in range(3)))
""",
    "keyword only and default": "def f(x, *, k=2, s=1.5): return x * k + s\n_ = f(torch.randn(5), k=3)",
    "star args": "def f(*xs, **kw): return sum(xs) * kw['s']\n_ = f(torch.randn(3), torch.randn(3), s=2.0)",
    "list of tensors": "def f(xs, dim=0): return torch.cat(xs, dim)\n_ = f([torch.randn(3, 4), torch.randn(2, 4)])",
    "list of numbers": "def f(x, dims): return x.sum(dims + [0])\n_ = f(torch.randn(3, 4, 5), [1])",
    "dtype and activation arguments": "def f(x, dtype=torch.float16, act=F.gelu): return act(x).to(dtype)\n_ = f(torch.randn(5, 6))",
    "device argument": "def f(x, device): return x + torch.arange(6, device=device)\n_ = f(torch.randn(5, 6), torch.device('cpu'))",
    "flag, text and None": """
def f(x, flag, mode, extra=None):
    y = x.sum(-1) if mode == "sum" else x.mean(-1)
    return (y if flag else -y) if extra is None else y
_ = f(torch.randn(5, 6), True, "mean")
""",
    "lambda bound to a name": "scale = 3\nf = lambda x, b=2: (x *\n   scale) + b\ny = f(torch.randn(4))",
    "lambda called at once": "out = (lambda a: a * 2)(torch.randn(4, 4))",
    "two lambdas on a line": "f, g = (lambda x: x + 1), (lambda x: x * 7)\ny = g(torch.randn(4))",
    "partial": "from functools import partial\ndef sm(x, dim): return x.softmax(dim)\nf = partial(sm, dim=0)\ny = f(torch.randn(4, 5))",
    "partial that holds a tensor": """
from functools import partial
def scale(w, x): return w * x
f = partial(scale, torch.randn(5))
y = f(torch.randn(4, 5))
""",
    "helpers, constants and an alias": """
import math as m
HALF = 0.5
TABLE = {"a": (1, 2.5), "b": [float("inf")]}
ACT = F.silu
def inner(x): return x * HALF * m.pi
def outer(x):
    return ACT(inner(x)) + TABLE["a"][1]
z = outer(torch.randn(4))
""",
    "helper that reads a parameter": """
W = nn.Parameter(torch.randn(8, 8))
def lin(x): return x @ W.t()
def f(x, *, k=2): return F.relu(lin(x) * k)
_ = f(torch.randn(4, 8), k=3)
""",
    "names that collide": """
scale = torch.randn(4)
def make(scale):
    def inner(x): return x * scale
    return inner
double, triple = make(2), make(3)
def f(x):
    return double(x) + triple(x) * scale
y = f(torch.randn(4))
""",
    "closure": """
def make(w, n):
    def op(x):
        y = x
        for _ in range(n):
            y = y * w + 1
        return y
    return op
op = make(torch.randn(6), 3)
y = op(torch.randn(5, 6))
""",
    "recursion with a free tensor": """
w = torch.randn(4)
def power(x, n):
    return x if n == 0 else power(x, n - 1) * w
y = power(torch.randn(4), 3)
""",
    "mutual recursion": """
def even(x, n): return x if n == 0 else odd(x + 1, n - 1)
def odd(x, n): return even(x * 2, n - 1)
y = even(torch.randn(4), 4)
""",
    "dict of weights": """
params = {"w": torch.randn(4, 4), "b": [torch.zeros(4), 2.0]}
def mlp(x): return (x @ params["w"] + params["b"][0]) * params["b"][1]
y = mlp(torch.randn(3, 4))
""",
    "dataclass of settings": """
from dataclasses import dataclass
@dataclass(frozen=True)
class Config:
    eps: float = 1e-5
    dims: tuple = (-1,)
cfg = Config(eps=1e-3)
def norm(x): return x / (x.norm(dim=cfg.dims, keepdim=True) + cfg.eps)
y = norm(torch.randn(3, 4))
""",
    "callable settings": """
from dataclasses import dataclass
@dataclass
class Scale:
    by: float
    def __call__(self, x): return x * self.by
scale = Scale(3.0)
y = scale(torch.randn(3, 4))
""",
    "an overload called at once": "y = torch.ops.aten.gelu(torch.randn(4))",
    "enum and named tuple": """
import enum, collections
class Mode(enum.Enum):
    SUM = 1
    MEAN = 2
Shape = collections.namedtuple("Shape", "rows cols")
mode = Mode.MEAN
def reduce(x): return x.sum(0) if mode is Mode.SUM else x.mean(0)
y = reduce(torch.randn(3, 4))
""",
    "static method": """
class Ops:
    @staticmethod
    def swish(x, beta=1.0):
        return x * torch.sigmoid(beta * x)
y = Ops.swish(torch.randn(3, 4))
""",
    "class method": """
class Ops:
    gain = 3.0
    @classmethod
    def scaled(cls, x):
        return x * cls.gain
y = Ops.scaled(torch.randn(3, 4))
""",
    "autograd function": """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
def square(x): return Square.apply(x)
y = square(torch.randn(3, 4))
""",
    "decorators": """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2 * f(*args, **kwargs)
    return wrapper
b = torch.randn(4)
@torch.no_grad()
@twice
def f(x, k=3): return x * k + b
y = f(torch.randn(3, 4))
""",
    "wrapped without syntax": """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(x):
        return 2 * f(x)
    return wrapper
def plain(x): return x + 1
f = twice(plain)
y = f(torch.randn(3, 4))
""",
    "rearranging in pure python": """
def rearrange(x, heads):
    b, t, d = x.shape
    return x.reshape(b, t, heads, d // heads).permute(0, 2, 1, 3).contiguous()
y = rearrange(torch.randn(2, 5, 8), 4)
""",
    "annotations": """
from typing import Optional
from __future__ import annotations
class Sized: pass
def f(x: torch.Tensor, scale: Optional[float] = None, unused: "Nowhere" = None) -> Sized:
    y: int = 3
    return x * y
y = f(torch.randn(3))
""",
    "outputs as a dict": "def f(x): return {'a': x + 1, 'b': (x * 2, None, x.sum())}\ny = f(torch.randn(3))",
    "inner function and comprehension": """
n = 3
def f(x):
    def step(y): return y * n + k
    k = 2
    return torch.stack([step(x + i) for i in range(n)])
y = f(torch.randn(3))
""",
    "one line with a semicolon": "w = torch.randn(3)\ndef f(x): a = x * 2; return a + w\ny = f(torch.randn(3))",
    "a string over several lines": '''
w = torch.randn(3)
def helper(x):
    text = """
not indented
"""
    return x * len(text) * w
def f(x): return helper(x)
y = f(torch.randn(3))
''',
    "in place on a buffer of its own": "seen = torch.zeros(5)\ndef f(x):\n    seen.copy_(x * 2)\n    return seen + x\ny = f(torch.randn(5))",
    "in place on a copy": "def f(x):\n    y = x - x.max()\n    y.exp_()\n    return y / y.sum()\ny = f(torch.randn(5))",
    "bfloat16": "def f(x, w): return (x * w).sum(-1)\ny = f(torch.randn(8, 16, dtype=torch.bfloat16), torch.randn(16, dtype=torch.bfloat16))",
    "transposed and expanded": "def f(x, b): return x + b\ny = f(torch.randn(6, 4).t(), torch.randn(4, 1).expand(4, 6))",
    "embedding": "def f(i, table): return F.embedding(i, table)\ny = f(torch.randint(0, 20, (3, 4)), torch.randn(20, 8))",
    "gather of a permutation": "def f(x, i): return x.gather(1, i)\ny = f(torch.randn(2, 5), torch.stack([torch.randperm(5)] * 2))",
    "conv": "def f(x, w): return F.conv2d(x, w, padding=1)\ny = f(torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3))",
    "nested call takes the outer": "def a(x): return x + 1\ndef b(x): return x * 2\ny = b(a(torch.randn(3)))",
    "printed result": "def f(x): return x * 3\nprint(f(torch.randn(3)).sum())",
    "checked afterwards": """
def f(x): return x.softmax(-1)
x = torch.randn(3, 4)
y = f(x)
torch.testing.assert_close(y, torch.softmax(x, -1))
""",
    "under no_grad in a loop": "def f(x): return x * 3\nwith torch.no_grad():\n    for _ in range(3):\n        y = f(torch.randn(3))",
    "under autocast": """
def f(x, w): return x @ w
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = f(torch.randn(4, 8), torch.randn(8, 4))
""",
    "library function": "y = F.layer_norm(torch.randn(4, 8), (8,), torch.ones(8), torch.zeros(8))",
    "builtin of torch": "y = torch.softmax(torch.randn(4, 8), dim=-1)",
    "tensor method": "x = torch.randn(4, 8)\nx.softmax(-1)",
    "imported function": "from torch import softmax as sm\ndef f(x): return sm(x, 0)\ny = f(torch.randn(4))",
    "numpy scalar and torch.ops": """
import numpy as np
K = np.float32(0.5)
gelu = torch.ops.aten.gelu.default
def f(x, s): return gelu(x) * K * s
y = f(torch.randn(4), np.float64(2.0))
""",
    "compiled helper": "g = torch.compile(lambda x: x * 2, backend='eager')\ndef f(x): return g(x) + 1\ny = f(torch.randn(4))",
    "outer product in two steps": "def f(a, b):\n    y = torch.outer(a, b)\n    return y.cumsum(0)\ny = f(torch.randn(5), torch.randn(6))",
    "einsum": "def f(a, b): return torch.einsum('bij,bjk->bik', a, b)\ny = f(torch.randn(2, 3, 4), torch.randn(2, 4, 5))",
    "module: linear": "net = nn.Linear(8, 5)\ny = net(torch.randn(3, 8))",
    "module: sequential": "net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.5)).eval()\nnet(torch.randn(4, 8))",
    "module: batch norm in eval": "net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True)).eval()\nnet(torch.randn(2, 3, 8, 8))",
    "module: batch norm in training": "net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))\ny = net(torch.randn(16, 8))",
    "module: of one's own": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.b.weight = self.a.weight
        self.register_buffer("shift", torch.randn(8), persistent=False)
        self.table = torch.tensor([1.0, 2.0])
    def forward(self, x, k=3, *, mask=None):
        with torch.no_grad():
            z = x * 2
        out = self.b(self.a(x)) * k + self.shift + torch.arange(8, device=x.device)
        return {"out": out if mask is None else out * mask, "half": z.float().to(torch.float16) + self.table[0]}
net = Net()
y = net(torch.randn(4, 8), k=2, mask=torch.rand(4, 8) > 0.5)
""",
    "module: in a function": """
net = nn.Linear(8, 8)
b = torch.randn(8)
def f(x, s=2.0): return net(x) * s + b
y = f(torch.randn(4, 8))
""",
    "module: a method of it": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8))
    def scaled(self, x): return x * self.w
net = Net()
y = net.scaled(torch.randn(4, 8))
""",
    "module: multi head attention": "net = nn.MultiheadAttention(8, 2, batch_first=True).eval()\nx = torch.randn(2, 5, 8)\ny = net(x, x, x)",
    "module: under autocast": """
net = nn.Linear(8, 5)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = net(torch.randn(3, 8))
""",
    "module: transformer layer": "net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()\ny = net(torch.randn(2, 5, 8))",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_op_survives_the_way_through_json(cell: str) -> None:
    task = round_trip(capture(cell))
    assert task.graph.nodes, "every one of these ops can be traced"
    assert task.work.bytes > 0


def test_reference_runs_standalone() -> None:
    captured = capture(CELLS["names that collide"])
    program = captured.task.reference + (
        "\nx = torch.arange(4.0)"
        "\nassert f(x, torch.ones(4)).tolist() == (x * 5).tolist()"
        "\nprint('alone')\n"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "alone\n", done.stderr


def test_source_stays_as_it_was_written() -> None:
    captured = capture(CELLS["softmax"])
    assert "    m = x.max(-1, keepdim=True).values  # stable\n" in captured.task.reference
    assert captured.task.entry == "softmax"
    assert captured.task.graph.ops() == ("max", "getitem", "sub", "exp", "sum", "div")


def test_free_tensors_become_the_last_arguments_with_their_roles() -> None:
    task = capture(CELLS["helper that reads a parameter"]).task
    assert [(spec.name, spec.role) for spec in task.inputs] == [("x", "input"), ("k", "input"), ("W", "parameter")]
    task = capture(CELLS["rmsnorm reads a weight"]).task
    assert [(spec.name, spec.role) for spec in task.inputs] == [("x", "input"), ("eps", "input"), ("weight", "buffer")]
    assert "def rmsnorm(x, eps, weight):" in task.reference
    assert task.inputs[1].values.value == 1e-6


def test_live_op_reads_the_given_tensors_and_leaves_the_notebook_alone() -> None:
    namespace = notebook()
    captured = capture(CELLS["dict of weights"], namespace)
    before = namespace["params"]["w"].clone()
    x, w, b, s = torch.ones(3, 4), torch.full((4, 4), 2.0), torch.full((4,), 1.0), 2.0
    names = [spec.name for spec in captured.task.inputs]
    values = {"x": x, "params_w": w, "params_b_0": b}
    (out,) = captured.live([values[name] for name in names])
    assert torch.equal(out, torch.full((3, 4), (8 + 1.0) * s))
    assert torch.equal(namespace["params"]["w"], before)


def test_live_module_leaves_the_notebook_alone() -> None:
    namespace = notebook()
    captured = capture(CELLS["module: in a function"], namespace)
    before = namespace["net"].weight.detach().clone()
    values = {"x": torch.ones(4, 8), "net_weight": torch.zeros(8, 8), "net_bias": torch.ones(8), "b": torch.full((8,), 5.0)}
    (out,) = captured.live([values[spec.name] for spec in captured.task.inputs])
    assert torch.equal(out, torch.full((4, 8), 7.0))
    assert torch.equal(namespace["net"].weight, before)


def test_tied_parameters_appear_once_and_unused_ones_not_at_all() -> None:
    names = [spec.name for spec in capture(CELLS["module: of one's own"]).task.inputs]
    assert sum("weight" in name for name in names) == 1
    names = [spec.name for spec in capture(CELLS["module: batch norm in eval"]).task.inputs]
    assert not any("num_batches" in name for name in names)


def test_training_mode_uses_the_batch_and_says_so() -> None:
    captured = capture(CELLS["module: batch norm in training"])
    assert any("running statistics" in note for note in captured.notes)
    assert not any("running" in spec.name for spec in captured.task.inputs)


def test_compiled_function_is_captured_as_its_original() -> None:
    def double(x):
        return x * 2

    compiled = torch.compile(double, backend="eager")
    task = round_trip(capture_call(compiled, (torch.randn(4),)))
    assert task.entry == "double"
    namespace = notebook(options={"backend": "eager"})
    cell = "@torch.compile(**options)\ndef f(x):\n    return x * 3\n\ng = torch.compile(nn.Linear(4, 4), backend='eager')\ny = f(torch.randn(4))"
    task = round_trip(capture(cell, namespace))
    assert "compile" not in task.reference
    task = round_trip(capture("y = g(torch.randn(2, 4))", namespace))
    assert [spec.name for spec in task.inputs] == ["input", "weight", "bias"]


def test_call_without_a_cell() -> None:
    scale = torch.randn(4)
    captured = capture_call(lambda x, k=2: x * scale * k, (torch.randn(3, 4),), {"k": 5}, name="scaled")
    task = round_trip(captured)
    assert task.name == task.entry == "scaled"
    assert captured.value.shape == (3, 4)


def test_attention_is_one_node_whatever_the_device_makes_of_it() -> None:
    task = capture(CELLS["attention"]).task
    assert task.graph.ops() == ("scaled_dot_product_attention",)
    assert task.graph.nodes[0].op == "aten.scaled_dot_product_attention.default"
    assert [spec.name for spec in task.inputs] == ["q", "k", "v"]
    assert list(task.graph.nodes[0].refs()) == ["q", "k", "v"]


def test_differentiable_if_the_call_recorded_a_gradient() -> None:
    assert capture("net = nn.Linear(4, 4)\ny = net(torch.randn(2, 4))").task.differentiable
    assert not capture("def f(x): return x * 2\ny = f(torch.randn(2, 4))").task.differentiable

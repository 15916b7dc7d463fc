"""What can't be captured is one line that names the object and the mend."""

# ruff: noqa: E501 - each cell of a table stays on its line

from __future__ import annotations

import types

import pytest
import torch
from capturing import capture, notebook

from workbench.capture import capture_call, capture_cell, capture_file
from workbench.errors import CaptureError

REFUSED = {
    "no call": ("def f(x): return x\n", r"no call in the cell: add a line such as y = f\(x\)"),
    "nothing at all": ("x = 1\n", "no call in the cell: define an op and call it"),
    "no tensor output": ("def f(x): return float(x.sum())\nf(torch.randn(3))", "f returns no tensor but float: return the tensors"),
    "returns nothing": ("def f(x): return None\nf(torch.randn(3))", "f returns no tensor but NoneType"),
    "nonzero": ("def f(x): return x.nonzero()\nf(torch.randn(3))", "f calls aten.nonzero"),
    "boolean index": ("def f(x): return x[x > 0]\nf(torch.randn(3))", "f calls aten.nonzero.*boolean mask"),
    "masked_select": ("def f(x): return x.masked_select(x > 0)\nf(torch.randn(3))", "f calls aten.masked_select"),
    "unique": ("def f(x): return torch.unique(x)\nf(torch.randn(3))", "f calls aten._unique2"),
    "complex": ("def f(x): return x.abs()\nf(torch.randn(3, dtype=torch.complex64))", "input x is complex64"),
    "complex output": ("def f(x): return torch.fft.fft(x)\nf(torch.randn(8))", "output 0 of f is complex64"),
    "sparse": ("def f(x): return x.to_dense()\nf(torch.eye(3).to_sparse())", "input x is sparse_coo: pass a dense tensor"),
    "quantized": (
        "def f(x): return x.dequantize()\nf(torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8))", "input x is quantized"),
    "unsigned 16": ("def f(x): return x.float()\nf(torch.ones(3).to(torch.uint16))", "input x has dtype uint16: use one of"),
    "meta": ("def f(x): return x * 2\nf(torch.ones(3, device='meta'))", "on the meta device"),
    "dict input": ("def f(d): return d['x'] * 2\nf({'x': torch.randn(3)})", "input d of f is a dict: pass tensors and plain values"),
    "open file": ("import io\ndef f(x, log): return x * 2\nf(torch.randn(3), io.StringIO())", "input log of f is a StringIO"),
    "numpy input": ("import numpy as np\ndef f(x, y): return x * 2\nf(torch.randn(3), np.ones(3))", "f is called with a NumPy array for y: give it a tensor"),
    "custom object": ("class Thing: pass\ndef f(x, thing): return x * 2\nf(torch.randn(3), Thing())", "input thing of f is a Thing"),
    "free object": ("class Thing:\n    k = 2\nthing = Thing()\ndef f(x): return x * thing.k\nf(torch.randn(3))", "f reads thing, a Thing, which can't be captured"),
    "state": ("n = 0\ndef f(x):\n    global n\n    n += 1\n    return x * n\nf(torch.randn(3))", "f assigns the variable n outside itself"),
    "state in a closure": (
        "def make():\n    n = 0\n    def f(x):\n        nonlocal n\n        n += 1\n        return x * n\n    return f\nf = make()\nf(torch.randn(3))",
        "f assigns the variable n outside itself"),
    "counter in a list": ("seen = []\ndef f(x):\n    seen.append(1)\n    return x * len(seen)\nf(torch.randn(3))", "two runs of f on the same inputs differ"),
    "exec": ("exec('def f(x): return x * 2')\nf(torch.randn(3))", "the source of f can't be found: define it in a cell or a file"),
    "class reading a tensor": (
        "w = torch.randn(3)\nclass Op:\n    @staticmethod\n    def run(x): return x * w\ndef f(x): return Op.run(x)\nf(torch.randn(3))",
        "class Op reads the Tensor w from outside"),
    "method with state": ("class Op:\n    def run(self, x): return x * 2\nop = Op()\nop.run(torch.randn(3))", "run is a method of a Op"),
    "callable object": ("class Op:\n    def __call__(self, x): return x * 2\nop = Op()\ny = op(torch.randn(3))", "op is an object of type Op: make it a function"),
    "scripted": ("@torch.jit.script\ndef f(x: torch.Tensor): return x * 2\ny = f(torch.randn(3))", "f is an object of type .*ScriptFunction"),
    "vmap": ("def f(x): return x * 2\ng = torch.vmap(f)\ny = g(torch.randn(3))", "made by torch"),
    "generator": ("def f(x): yield x\ndef g(x): return next(f(x))\ng(torch.randn(3))", "f is async or a generator"),
    "control flow in a module": (
        "class Net(nn.Module):\n    def forward(self, x): return x * 2 if x.sum() > 0 else x\nnet = Net()\nnet(torch.randn(3))",
        "net can't be exported: it decides by a tensor's values"),
    "recurrent module": ("net = nn.Sequential(nn.GRU(4, 4))\nnet(torch.randn(9, 1, 4))[0]", "net holds a GRU, which is a loop over its sequence"),
    "op that raises": ("def f(x):\n    y = x * 2\n    return y @ y\nf(torch.randn(3, 4))", r"f raises RuntimeError: .* \(line 3\)"),
}  # fmt: skip


@pytest.mark.parametrize(("cell", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refused_in_one_line(cell: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message) as caught:
        capture(cell)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_other_exceptions_of_the_cell_come_through() -> None:
    namespace = notebook()
    with pytest.raises(ZeroDivisionError):
        capture("def f(x): return x\ny = f(torch.randn(3))\n1 / 0", namespace)
    assert "y" in namespace and not any(name.startswith("__workbench") for name in namespace)
    with pytest.raises(RuntimeError, match="size"):
        capture("def f(x): return x\ny = torch.randn(3) + torch.randn(4)\nf(y)", namespace)
    with pytest.raises(SyntaxError):
        capture("def f(x) return x", namespace)


def test_inputs_that_do_not_fit() -> None:
    cell = "def f(x, w):\n    return x @ w\n"
    with pytest.raises(CaptureError, match=r"--inputs args don't fit f: RuntimeError: .*line 2"):
        capture(cell, notebook(args=(torch.randn(3, 4), torch.randn(3, 4))), inputs="args")
    with pytest.raises(CaptureError, match="--inputs args don't fit f: TypeError"):
        capture(cell, notebook(args=(torch.randn(3, 4),)), inputs="args")
    with pytest.raises(CaptureError, match="--inputs nowhere: the notebook has no such name"):
        capture(cell, notebook(), inputs="nowhere")
    with pytest.raises(CaptureError, match="--inputs args: the cell defines no op"):
        capture("x = 3", notebook(args=(1,)), inputs="args")
    with pytest.raises(CaptureError, match=r"--inputs args: args\(\) raises KeyError"):
        capture(cell, notebook(args=lambda: {}["x"]), inputs="args")


def test_call_that_raises_or_does_not_fit() -> None:
    with pytest.raises(CaptureError, match=r"multiply raises on these inputs: RuntimeError: .*line"):
        capture_call(multiply, (torch.randn(3, 4), torch.randn(3, 4)))
    with pytest.raises(CaptureError, match="multiply raises on these inputs: TypeError"):
        capture_call(multiply, (torch.randn(3, 4),))


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def test_text_that_gives_other_values_is_caught() -> None:
    namespace = notebook(k=2)
    cell = "def f(x, k=k): return x * g(x)\ndef g(x): return k\nx = torch.randn(3)\ny = f(x)\nk = 3"
    with pytest.raises(CaptureError, match="the captured text of f gives other values than the live op: output 0 differs by up to"):
        capture(cell, namespace)


def test_own_module_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "my_ops_of_mine.py").write_text("def double(x): return x * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CaptureError, match="f uses my_ops_of_mine, a module of your own: import the functions"):
        capture("import my_ops_of_mine\ndef f(x): return my_ops_of_mine.double(x)\nf(torch.randn(3))")
    captured = capture("from my_ops_of_mine import double\ndef f(x): return double(x)\nf(torch.randn(3))")
    assert "def double(x): return x * 2" in captured.task.reference


def test_failing_export_says_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CaptureError):
        capture(REFUSED["control flow in a module"][0])
    assert capfd.readouterr() == ("", "")


def test_unknown_target() -> None:
    from workbench.errors import MisuseError

    with pytest.raises(MisuseError, match="unknown target"):
        capture("def f(x): return x * 2\nf(torch.randn(3))", target="cuda:1")


def test_files_that_are_no_reference(tmp_path) -> None:
    path = tmp_path / "ref.py"
    for text, message in (
        ("x = 1", "must define class Model, get_inputs and get_init_inputs, or one function and get_inputs"),
        ("def f(:", "is not Python: .*line 1"),
        ("1 / 0\ndef f(x): return x\ndef get_inputs(): return []", r"ZeroDivisionError: division by zero \(line 1\)"),
        (
            "import torch\ndef f(x): return x\ndef get_inputs():\n    raise OSError('no data')",
            r"get_inputs raises OSError: no data \(line 4\)",
        ),
        (
            "import torch\nclass Model(torch.nn.Module):\n    def __init__(self, n): super().__init__()\n    def forward(self, x): return x\n"
            "def get_inputs(): return [torch.ones(3)]\ndef get_init_inputs(): return [torch.ones(3)]",
            "get_init_inputs returns a Tensor at 0: return numbers",
        ),
        (
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\ndef get_inputs(): return [{'x': 1}]",
            "get_inputs returns a dict for x",
        ),
        (
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\ndef get_inputs(): return [torch.ones(3)] * 2",
            "what get_inputs returns doesn't fit Model.forward",
        ),
    ):
        path.write_text(text)
        with pytest.raises(CaptureError, match=message):
            capture_file(path)
    with pytest.raises(CaptureError, match="can't be read: FileNotFoundError"):
        capture_file(tmp_path / "nowhere.py")


def test_module_object_as_argument() -> None:
    with pytest.raises(CaptureError, match="input m of f is a module"):
        capture_call(lambda x, m: x * 2, (torch.randn(3), types), name="f")


def test_error_inside_another_cell_is_no_capture_error() -> None:
    namespace = notebook()
    with pytest.raises(KeyError):
        capture_cell("d = {}\nd['x']\n", namespace)

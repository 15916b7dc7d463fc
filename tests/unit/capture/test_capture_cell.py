"""Running a cell as Python would, and finding its op."""

from __future__ import annotations

import inspect
import linecache
import traceback

import pytest
import torch
from capturing import capture, notebook, round_trip

from workbench.capture import capture_cell


def test_cell_runs_as_python_would() -> None:
    namespace = notebook()
    captured = capture(
        "from __future__ import annotations\n"
        "import math\n"
        "def f(x: Nowhere) -> Nowhere: return x * math.pi\n"
        "class Holder: value = [i * i for i in range(3)]\n"
        "x = torch.ones(3)\n"
        "y = f(x); z = locals()['y'] + 1\n"
        "assert globals() is locals()\n"
        "import collections, typing\n"
        "assert collections.namedtuple('P', 'a').__module__ == typing.TypeVar('T').__module__ == '__main__'\n"
        "Holder.value",
        namespace,
    )
    assert captured.shown == [0, 1, 4]
    assert captured.value is namespace["y"]
    assert torch.equal(namespace["z"], torch.ones(3) * torch.pi + 1)
    assert namespace["f"].__module__ == "__main__"
    assert not [name for name in namespace if "workbench" in name]


def test_source_of_what_the_cell_defines_is_found() -> None:
    namespace = notebook()
    capture("def f(x):\n    return x * 2\n\ny = f(torch.ones(3))", namespace)
    assert inspect.getsource(namespace["f"]) == "def f(x):\n    return x * 2\n"


def test_traceback_shows_the_cells_own_lines() -> None:
    try:
        capture("x = 1\ndef g(): raise KeyError('here')\ng()")
    except KeyError as error:
        text = "".join(traceback.format_exception(error))
    assert "def g(): raise KeyError('here')" in text and "line 3" in text


def test_op_and_arguments_are_evaluated_once() -> None:
    namespace = notebook(calls=[], made=[])
    capture("def f(x):\n    return x * 2\ndef make():\n    made.append(1)\n    return torch.ones(3)\ny = f(make())", namespace)
    assert namespace["made"] == [1]
    namespace = notebook()
    capture("def f(x):\n    x.add_(1)\n    return x * 2\nx = torch.zeros(3)\ny = f(x)", namespace)
    assert torch.equal(namespace["x"], torch.ones(3)), "the op changed the notebook's tensor once"


def test_values_are_described_before_the_cell_changes_them() -> None:
    captured = capture("def f(x):\n    return x + 0\nx = torch.rand(1000)\ny = f(x)\nx.fill_(7)")
    assert captured.task.inputs[0].values.kind == "uniform"
    assert any("the cell writes to them" in note for note in captured.notes)


CHOICES = {
    "the last call": ("def f(x): return x + 1\ndef g(x): return x * 2\nf(x)\ng(x)", "g"),
    "not a check that returns no tensor": ("def f(x): return x + 1\ndef check(y): assert y.shape\ny = f(x)\ncheck(y)", "f"),
    "the cell's own before the notebook's": ("def f(x): return x + 1\ny = f(x)\nold(y)", "f"),
    "the notebook's before a library's": ("y = old(x)\nz = torch.exp(y)", "old"),
    "a library's before a method": ("y = torch.exp(x)\nz = y.sum()", "exp"),
    "inside print": ("def f(x): return x + 1\nprint(f(x).shape)", "f"),
    "in a with block": ("def f(x): return x + 1\nwith torch.no_grad():\n    y = f(x)", "f"),
    "under if and for": ("def f(x): return x + 1\nif True:\n    for i in range(2):\n        y = f(x)", "f"),
    "assigned with an operator": ("def f(x): return x + 1\ny = 1\ny += f(x)", "f"),
    "not a constructor": ("class Net(nn.Module):\n    def forward(self, x): return x * 2\nnet = Net()\nnet(x)\nOther = Net()", "net"),
    "constructed and called at once": ("class MyNet(nn.Module):\n    def forward(self, x): return x * 2\nMyNet()(x)", "my_net"),
    "from a dict": ("ops = {'a': lambda x: x * 2}\ny = ops['a'](x)", "op"),
}


@pytest.mark.parametrize(("cell", "entry"), CHOICES.values(), ids=CHOICES)
def test_which_call_is_the_op(cell: str, entry: str) -> None:
    namespace = notebook()
    exec(compile("def old(x): return x - 1\n", "<earlier-cell>", "exec"), namespace)
    linecache.cache["<earlier-cell>"] = (1, None, ["def old(x): return x - 1\n"], "<earlier-cell>")
    namespace["x"] = torch.randn(4)
    assert round_trip(capture(cell, namespace)).entry == entry


def test_name_target_and_precision() -> None:
    task = capture("def f(x): return x * 2\nf(torch.ones(2))", name="double it", target="cuda:80", precision="tf32").task
    assert (task.name, task.entry, task.target, task.precision) == ("double it", "f", "cuda:80", "tf32")
    task = capture("f = lambda x: x * 2\nf(torch.ones(2))", name="double it").task
    assert (task.name, task.entry) == ("double it", "double_it")


def test_inputs_go_to_the_op_defined_last() -> None:
    namespace = notebook(args=[torch.randn(3, 4), 2])
    task = round_trip(capture("def g(x): return x\ndef f(x, k): return g(x) * k\n", namespace, inputs="args"))
    assert [spec.name for spec in task.inputs] == ["x", "k"]
    task = round_trip(capture("def f(x): return x * 3\ndef get_args(): return (torch.randn(3),)\n", inputs="get_args"))
    assert task.entry == "f"
    task = round_trip(capture("net = nn.Linear(4, 4)\n", notebook(x=torch.randn(2, 4)), inputs="x"))
    assert task.entry == "net"
    task = round_trip(capture("op = lambda x: x * 3\n", notebook(x=torch.randn(2, 4)), inputs="x"))
    assert task.entry == "op"


def test_inputs_replace_those_of_a_call() -> None:
    captured = capture("def f(x): return x * 3\nf(torch.randn(2))", notebook(big=(torch.randn(7),)), inputs="big")
    assert captured.task.inputs[0].shape == (7,)


def test_statements_can_be_run_by_someone_else() -> None:
    seen = []

    def run(code, namespace):
        seen.append(code.co_filename)
        exec(code, namespace)

    captured = capture_cell("def f(x): return x * 2\ny = f(torch.ones(2))\n", notebook(), run=run, filename="cell-7.py")
    assert seen == ["cell-7.py"] * 2
    assert captured.task.entry == "f"


KERNELBENCH = """
class Model(nn.Module):
    def __init__(self, n, scale):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.scale = scale
    def forward(self, x):
        return helper(self.fc(x)) * self.scale
def get_inputs():
    return [torch.rand(4, N)]
def get_init_inputs():
    return [N, 2.0]
"""


def test_kernelbench_cell_needs_no_call_and_takes_what_it_reads_from_the_notebook() -> None:
    namespace = notebook(N=8)
    filename = "<helper-cell>"
    linecache.cache[filename] = (1, None, ["def helper(x): return x.relu()\n"], filename)
    exec(compile("def helper(x): return x.relu()\n", filename, "exec"), namespace)
    captured = capture(KERNELBENCH, namespace, name="fc")
    task = round_trip(captured)
    assert (task.format, task.entry, task.candidate_entry, task.init_args) == ("model", "Model", "ModelNew", (8, 2.0))
    assert KERNELBENCH in task.reference, "the cell's text is kept as it is"
    assert "N = 8" in task.reference and "def helper(x): return x.relu()" in task.reference
    assert [spec.name for spec in task.inputs] == ["x"]
    assert [node.op for node in task.graph.nodes][:2] == ["get_attr", "get_attr"]
    assert {node.name: node.shape for node in task.graph.nodes[:2]} == {"fc_weight": (8, 8), "fc_bias": (8,)}
    assert task.work.bytes == 4 * (4 * 8 + 8 * 8 + 8 + 4 * 8)

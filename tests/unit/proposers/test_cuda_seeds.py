"""On a GPU every CUDA expert that fits an op writes one of the run's first candidates."""

from __future__ import annotations

import asyncio
import importlib

import pytest

from workbench.graph import Graph, Node
from workbench.knowledge import experts
from workbench.proposers.experts import ExpertProposer
from workbench.search import Search
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

start = importlib.import_module("workbench.evolution.start")  # the package has a function of the same name


def strides_of(shape):
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


def task_of(name, nodes, inputs, output):
    specs = tuple(InputSpec(key, shape, "float32", strides_of(shape), Values("normal")) for key, shape in inputs.items())
    graph = Graph(tuple(Node(key, op, args, {}, shape, "float32") for key, op, args, shape in nodes), (nodes[-1][0],))
    return Task(name, "", name, specs, (OutputSpec(output, "float32", strides_of(output)),), Work(0, 0), graph=graph, target="cuda:90")


def ref(name):
    return {"ref": name}


def softmax(rows, columns):
    shape = (rows, columns)
    return task_of("softmax", [("out", "aten._softmax.default", (ref("x"), -1, False), shape)], {"x": shape}, shape)


def relu():
    shape = (512, 4096)
    return task_of("relu", [("out", "aten.relu.default", (ref("x"),), shape)], {"x": shape}, shape)


def transposed_add():
    shape = (1024, 2048)
    nodes = [("t", "aten.t.default", (ref("x"),), shape), ("out", "aten.add.Tensor", (ref("t"), ref("y")), shape)]
    return task_of("transposed_add", nodes, {"x": (2048, 1024), "y": shape}, shape)


TASKS = {
    "cuda_pointwise": relu(), "cuda_tile": transposed_add(), "cuda_rows": softmax(4096, 8192), "cuda_ring": softmax(4096, 16384),
    "cuda_team": softmax(4096, 393216),
    "cuda_split": softmax(16, 1 << 20),
}  # fmt: skip


def test_each_cuda_expert_has_an_op_here():
    assert {name for name in experts.names() if experts.backend(name) == "cuda"} == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_it_is_among_the_first_candidates(name, monkeypatch):
    monkeypatch.setattr(start, "_on_nvidia", lambda task, device: True)
    task = TASKS[name]
    fitting, notes = start._experts(task, "auto")
    assert name in fitting and not notes
    search, proposer, seen = Search(task, experts=fitting), ExpertProposer(), {}
    for _ in range(len(fitting) + len(search.islands)):
        brief = search.ask()
        if brief is None or brief.kind != "seed":
            break
        made = search.receive(asyncio.run(proposer.propose(brief))).candidate
        if made is not None:
            seen[made.recipe["expert"]] = made
    assert set(seen) == set(fitting)
    assert seen[name].backend == "cuda" and "KERNELS" in seen[name].source

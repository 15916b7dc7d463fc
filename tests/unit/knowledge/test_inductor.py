"""Inductor's own kernels as candidates: modules of its shape are turned, run as they should, and what can't be turned says why."""

from __future__ import annotations

import ast
import dataclasses

import inductor_modules as made
import pytest
import torch
from expert_lab import run_interpreted, trace

from workbench.build.tune import read_tune
from workbench.judge.recording.recorder import record
from workbench.judge.text import labels
from workbench.judge.workers.generated import Watch, seed
from workbench.knowledge.inductor import PLAN, Generated, UnsupportedError, turn
from workbench.target import TARGETS
from workbench.task import OutputSpec, Task, Work


def softmax(x):
    return torch.softmax(x, -1)


def product(x, w, b):
    return torch.relu(x @ w.t() + b)


def centred(x):
    return x - x.mean(-1, keepdim=True), x.var(-1, unbiased=False)


def scan(x):
    return x.cumsum(-1), x.argmax(-1)


def doubled(x):
    return x * 2


CASES = {
    "softmax": (softmax, ((6, 200),), made.SOFTMAX, made.SOFTMAX_CONFIGS, ("input:x",)),
    "product": (product, ((8, 4), (16, 4), (16,)), made.PRODUCT, made.PRODUCT_CONFIGS, ("input:w", "input:x", "input:b")),
    "centred": (centred, ((5, 96),), made.CENTRED, made.CENTRED_CONFIGS, ("input:x",)),
    "scan": (scan, ((3, 128),), made.SCAN, made.SCAN_CONFIGS, ("input:x",)),
    "template": (doubled, ((4, 32),), made.TEMPLATE, made.TEMPLATE_CONFIGS, ("input:x",)),
}


def arguments_of(name):
    torch.manual_seed(0)
    return [torch.randn(shape) for shape in CASES[name][1]]


def turned(name, **changed):
    op, _, code, configs, inputs = CASES[name]
    task = trace(op, *arguments_of(name), name=name)
    given = {"code": code, "inputs": inputs, "configs": configs, **changed}
    return task, turn(Generated(**given), task)


def test_they_compute_what_the_op_does_in_the_interpreter(tmp_path):
    jobs, wanted = [], []
    for name in CASES:
        task, source = turned(name)
        arguments = arguments_of(name)
        points = [{}, {key: values[-1] for key, values in read_tune(source).items()}]
        # A transposed operand is made dense; another point of the space computes the same.
        for inputs, parameters in ((arguments, points[0]), ([a.t().contiguous().t() for a in arguments], points[1])):
            jobs.append({"source": source, "entry": task.candidate_entry, "inputs": inputs, "parameters": parameters})
            wanted.append(CASES[name][0](*inputs))
    for found, want in zip(run_interpreted(jobs, tmp_path), wanted, strict=True):
        assert not isinstance(found, str), found
        for got, right in zip(found, want if isinstance(want, tuple) else (want,), strict=True):
            assert got.dtype == right.dtype and got.shape == right.shape
            torch.testing.assert_close(got, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "centred", "template"])
def test_they_compile_for_the_card_with_the_chosen_configuration(name, tmp_path):
    task, source = turned(name)
    found = record(source, task.candidate_entry, {}, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
    assert found.error is None
    warps = [config["num_warps"] for config in CASES[name][3].values()]
    assert [launch.resources.warps for launch in found.launches] == warps
    assert [launch.resources.kernel for launch in found.launches] == list(CASES[name][3])


def test_they_need_torch_and_triton_alone():
    for name in CASES:
        _, source = turned(name)
        roots = {alias.name.split(".")[0] for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names}
        roots |= {node.module.split(".")[0] for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
        assert roots <= {"torch", "triton"} and "_inductor" not in source and "async_compile" not in source
        reading = labels.read(source)
        assert not reading.tampering


def test_the_chosen_configuration_is_the_first_point():
    _, source = turned("centred")
    space = read_tune(source)
    assert {name: values[0] for name, values in space.items()} == {
        "XBLOCK_0": 2, "R0_BLOCK_0": 32, "NUM_WARPS_0": 4, "YBLOCK_1": 4, "XBLOCK_1": 64, "NUM_WARPS_1": 2,
    }  # fmt: skip
    # Where blocks cover an extent exactly there may be no mask: no block that would leave a rest is offered.
    _, exact = turned("product")
    assert read_tune(exact)["XBLOCK"] == (64, 128, 32)
    other = {"triton_poi_fused_1": {"XBLOCK": 128, "num_warps": 8, "num_stages": 1}}
    assert read_tune(turned("product", configs=other)[1])["XBLOCK"] == (128, 64)


def test_other_shapes_and_dtypes_are_said_to_be_unsupported(tmp_path):
    _, source = turned("softmax")
    jobs = [{"source": source, "entry": "softmax", "inputs": [x]} for x in (torch.randn(6, 201), torch.randn(6, 200).double())]
    assert all("NotImplementedError: written for x of this shape and dtype alone" in found for found in run_interpreted(jobs, tmp_path))


def test_a_scalar_is_held_to_what_was_compiled(tmp_path):
    def doubled(x, factor):
        return x * factor

    x = torch.randn(4, 32)
    task = trace(doubled, x, 2, name="doubled")
    source = turn(Generated(made.TEMPLATE, ("input:x",), made.TEMPLATE_CONFIGS), task)
    jobs = [{"source": source, "entry": "doubled", "inputs": [x, factor]} for factor in (2, 3)]
    right, refused = run_interpreted(jobs, tmp_path)
    torch.testing.assert_close(right[0], x * 2)
    assert "written for factor = 2 alone" in refused


MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = torch.nn.Linear(4, width)

    def forward(self, x):
        return torch.relu(self.lin(x))
"""


@pytest.mark.parametrize(("name", "forward"), [("linear", "linear_forward"), ("76_Gemm_Add ReLU", "op_76_gemm_add_relu_forward")])
def test_a_models_tensors_are_its_own(name, forward):
    specs = trace(product, *arguments_of("product")).inputs[:1]
    task = Task(name, MODEL, "Model", specs, (OutputSpec((8, 16), "float32"),), Work(0, 0), format="model", init_args=(16,))
    source = turn(Generated(made.PRODUCT, ("state:lin.weight", "input:x", "state:lin.bias"), made.PRODUCT_CONFIGS), task)
    assert "class ModelNew" in source and f"{forward}(x, self.lin.weight, self.lin.bias)" in source


@pytest.mark.parametrize(("changed", "why"), [
    ({"configs": {}}, "configuration Inductor chose for triton_red_fused_0 is not known"),
    ({"inputs": ("unknown:G['w']",)}, "none of the op's"),
    ({"inputs": ("input:x", "input:x")}, "1 arguments, of which 2 are known"),
    ({"code": made.SOFTMAX.replace("online_softmax_reduce", "sort_with_index")}, "helper sort_with_index"),
    ({"code": made.SOFTMAX.replace("Grid1D", "CooperativeReductionGrid")}, "CooperativeReductionGrid"),
    ({"code": made.SOFTMAX.replace("libdevice.exp(", "tl_math.cyl_bessel_i0(")}, "tl_math.cyl_bessel_i0"),
    ({"code": made.SOFTMAX.replace("async_compile.triton(", "async_compile.cpp(")}, "another language than Triton"),
    ({"code": made.SOFTMAX.replace("buf2 = empty_strided_cuda", "buf2 = alloc_from_pool")}, "alloc_from_pool"),
    ({"code": made.SOFTMAX.replace("return (buf2, )", "return (buf2, 7)")}, "2 results, where the op has 1"),
    ({"code": made.SOFTMAX.replace("return (buf2, )", "return (arg0_1, )")}, "a result that is an argument"),
    ({"code": made.SOFTMAX.replace("            del arg0_1", "            while True: pass")}, "a statement that has no plain form"),
    ({"code": made.SOFTMAX.replace("def call(self", "def run(self")}, "without one function"),
    ({"code": "def call(:"}, "can't be parsed"),
    ({"code": made.PRODUCT.replace("extern_kernels.mm", "extern_kernels._scaled_mm"), "configs": made.PRODUCT_CONFIGS,
      "inputs": ("input:x",) * 3}, "extern_kernels._scaled_mm"),
])  # fmt: skip
def test_what_can_not_be_turned_says_why(changed, why):
    with pytest.raises(UnsupportedError, match=why):
        turned("softmax", **changed)


def test_an_op_that_changes_its_inputs_is_none():
    task, _ = turned("softmax")
    with pytest.raises(UnsupportedError, match="changes its inputs"):
        turn(Generated(made.SOFTMAX, ("input:x",), made.SOFTMAX_CONFIGS), dataclasses.replace(task, changes=("x",)))


def test_the_judge_says_why_there_is_no_seed():
    task, source = turned("softmax")
    told = {"code": made.SOFTMAX, "inputs": ["input:x"], "configs": made.SOFTMAX_CONFIGS}
    assert seed(task, told) == (source, "")
    assert seed(task, {"reason": "the op is compiled in 2 parts"}) == ("", "the op is compiled in 2 parts")
    assert seed(task, {**told, "configs": {}})[1].startswith("which configuration")
    assert PLAN.startswith("Inductor's own")


def test_what_nobody_has_foreseen_costs_the_seed_alone(monkeypatch):
    def stumbles(generated, task):
        raise KeyError("a new kind of node")

    monkeypatch.setattr("workbench.judge.workers.generated.turn", stumbles)
    task, _ = turned("softmax")
    told = {"code": made.SOFTMAX, "inputs": ["input:x"], "configs": made.SOFTMAX_CONFIGS}
    assert seed(task, told) == ("", "its reader does not understand it: KeyError: 'a new kind of node'")


@pytest.mark.full
def test_a_watch_sees_what_the_compiler_takes():
    """PyTorch's own compiler, for the CPU: which tensors its arguments are, in its order."""
    from torch._inductor import compile_fx

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(4, 4)

        def forward(self, x, y):
            return self.lin(y) + x

    model, before = Model(), compile_fx.compile_fx
    watch = Watch(model)
    try:
        with torch.no_grad():
            torch.compile(model, mode="max-autotune-no-cudagraphs", dynamic=False)(torch.randn(3, 4), torch.randn(3, 4))
        told = watch.told()
    finally:
        compile_fx.compile_fx = before
    assert sorted(told["inputs"]) == ["input:x", "input:y", "state:lin.bias", "state:lin.weight"]
    call = next(node for node in ast.walk(ast.parse(told["code"])) if isinstance(node, ast.FunctionDef) and node.name == "call")
    assert len(call.body[0].targets[0].elts) == 4

"""What the experts write is plain: one module that imports torch and Triton alone, tunable, and the same every time."""

from __future__ import annotations

import ast

import pytest
import torch
from expert_cases import CASES, make
from expert_lab import trace

from workbench.build.tune import choose, defaults, read_tune
from workbench.errors import MisuseError
from workbench.graph import Graph, Node
from workbench.knowledge import experts
from workbench.task import InputSpec, OutputSpec, Task, Values, Work


def written():
    for op, shapes, _ in CASES:
        task = trace(op, *make(shapes, torch.float32), name=op.__name__)
        for match in experts.match(task):
            yield pytest.param(task, match.expert, id=f"{op.__name__}-{match.expert}")


@pytest.mark.parametrize(("task", "expert"), written())
def test_a_source_is_a_plain_tunable_module(task, expert):
    source = experts.write(expert, task, {})
    assert source == experts.write(expert, task, {})
    tree = ast.parse(source)
    imported = {alias.name.split(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module.split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported == {"torch", "triton"}
    entry = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == task.candidate_entry)
    assert [argument.arg for argument in entry.args.args] == [spec.name for spec in task.inputs]
    tune = read_tune(source)
    assert any(name.startswith("NUM_WARPS") for name in tune)
    launchers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    used = {node.id for launcher in launchers for node in ast.walk(launcher) if isinstance(node, ast.Name)}
    assert entry in launchers and set(tune) <= used
    assert all(len(line) <= 130 for line in source.splitlines())
    assert "TUNE" not in choose(source, defaults(source))


@pytest.mark.parametrize(("task", "expert"), written())
def test_every_choice_has_a_role_and_a_reason(task, expert):
    roles = {"fusion and launches", "memory traffic and layout", "tiles and parameters", "instructions and algorithm"}
    for name, values in experts.choices(expert, task).items():
        assert experts.role(expert, name) in roles
        for value in values:
            assert experts.explain(expert, name, value) != f"{name} = {value}"
    assert len(experts.card(expert)) > 200


def test_roles_are_those_of_the_islands():
    from workbench.search import ROLES

    assert {role.name for role in ROLES} == {
        "fusion and launches", "memory traffic and layout", "tiles and parameters", "instructions and algorithm",
    }  # fmt: skip


def test_unknown_ops_match_nothing_and_say_why():
    def sort(x):
        return torch.sort(x)[0]

    task = trace(sort, torch.randn(4, 8), name="sort")
    assert experts.match(task) == ()
    assert experts.why_none(task) == "aten.sort.default is not an op that the experts know"


def test_an_op_that_writes_into_its_argument_matches_nothing():
    x = InputSpec("x", (4, 8), "float32", (8, 1), Values("normal"))
    node = Node("add_", "aten.add_.Tensor", ({"ref": "x"}, 1.0), {}, (4, 8), "float32")
    task = Task("add", "", "add", (x,), (OutputSpec((4, 8), "float32", (8, 1)),), Work(0, 0), graph=Graph((node,), ("add_",)))
    assert experts.match(task) == ()
    assert "writes into the argument x" in experts.why_none(task)


def test_a_task_without_a_graph_matches_nothing():
    task = Task("op", "", "op", (), (), Work(0, 0))
    assert experts.match(task) == ()
    assert experts.why_none(task) == "the op has no traced graph"


def test_wrong_choices_are_named():
    op, shapes, _ = CASES[0]
    task = trace(op, *make(shapes, torch.float32), name="softmax")
    with pytest.raises(MisuseError, match="rows has no choice passes='sideways'"):
        experts.write("rows", task, {"passes": "sideways"})
    with pytest.raises(MisuseError, match="unknown expert 'magic'"):
        experts.card("magic")


def test_policy_decides_the_precision_of_float32_products():
    from dataclasses import replace

    op, shapes, _ = next(case for case in CASES if case[0].__name__ == "matmul")
    task = trace(op, *make(shapes, torch.float32), name="matmul")
    assert experts.choices("matmul", task)["precision"] == ("bf16x6", "tf32x3", "ieee")
    assert experts.choices("matmul", replace(task, precision="tf32"))["precision"][0] == "tf32"
    assert experts.choices("matmul", replace(task, target="hip:gfx942"))["precision"] == ("bf16x6", "ieee")
    assert experts.choices("matmul", replace(task, matmul_precision="high"))["precision"][0] == "tf32"


def test_a_convolution_offers_what_pytorchs_own_computes_in():
    from dataclasses import replace

    def convolved(x, w):
        return torch.nn.functional.conv2d(x, w)

    def pointwise(x, w):
        return torch.nn.functional.conv2d(x, w)

    task = trace(convolved, torch.empty(4, 64, 64, 64, device="meta"), torch.empty(64, 64, 3, 3, device="meta"), name="convolved")
    assert "tf32" not in experts.choices("convolution", task)["precision"]
    assert experts.choices("convolution", replace(task, convolution_tf32=True))["precision"][:2] == ("tf32", "bf16x6")
    task = trace(pointwise, torch.empty(4, 64, 64, 64, device="meta"), torch.empty(64, 64, 1, 1, device="meta"), name="pointwise")
    assert experts.choices("matmul", replace(task, convolution_tf32=True))["precision"][:2] == ("tf32", "bf16x6")


def test_a_product_whose_result_is_small_is_always_split_along_its_inner_dimension():
    def long(x, y):
        return x @ y

    def first(rows):
        task = trace(long, torch.empty(rows, 1 << 16, device="meta"), torch.empty(1 << 16, rows, device="meta"), name="long")
        return experts.choices("matmul", task)["split"]

    assert first(256) == ("splitk",) and first(512) == ("splitk", "none") and first(4096) == ("none",)


@pytest.mark.parametrize(("rows", "passes"), [(1, ("split",)), (16, ("split",)), (64, ("split", "loop")), (4096, ("loop",))])
def test_few_and_long_rows_are_split_and_never_left_to_few_programs(rows, passes):
    def squares(x):
        return (x * x).sum(-1)

    task = trace(squares, torch.empty(rows, 1 << 22, device="meta"), name="squares")
    assert experts.choices("reduction", task)["passes"] == passes


def test_a_scalar_argument_is_checked():
    def scaled(x, s):
        return x * s

    source = experts.write("pointwise", trace(scaled, torch.randn(4, 8), 2.5, name="scaled"), {})
    assert 'if s != 2.5:\n        raise ValueError("scaled: s must be 2.5' in source


def test_large_tensors_get_wide_offsets():
    def double(x):
        return x * 2

    small = experts.write("pointwise", trace(double, torch.empty(1 << 20, device="meta"), name="double"), {})
    large = experts.write("pointwise", trace(double, torch.empty(1 << 32, device="meta"), name="double"), {})
    assert "int64" not in small and "2**31" in small
    assert "tl.program_id(0).to(tl.int64)" in large and "2**31" not in large


def test_programs_that_stay_hold_weights_as_narrow_as_they_were_read():
    def layernorm(x, w, b):
        return torch.nn.functional.layer_norm(x, (8192,), w, b)

    for dtype in (torch.bfloat16, torch.float32):
        shapes = ((4096, 8192), (8192,), (8192,))
        task = trace(layernorm, *[torch.empty(shape, dtype=dtype, device="meta") for shape in shapes], name="layernorm")
        before, loop = experts.write("rows", task, {"grid": "persistent"}).split("for row", 1)
        before = before[before.index("@triton.jit") :]
        assert before.count("tl.load(") == 2
        assert (".to(tl.float32)" in before, "w = w_held.to(tl.float32)" in loop) == (dtype == torch.float32, dtype == torch.bfloat16)

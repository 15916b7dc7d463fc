import dataclasses

import pytest

from workbench.build.occupancy import occupancy
from workbench.explain.diff import unified
from workbench.explain.roofline import eager_us, floor_us
from workbench.graph import Graph, Node
from workbench.target import TARGETS
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

H200 = TARGETS["cuda:90"]
SHAPE = (4096, 8192)
BYTES = 4096 * 8192 * 2


def node(name, op, *refs, shape=SHAPE, dtype="bfloat16"):
    return Node(name, f"aten.{op}.default", tuple({"ref": ref} for ref in refs), {}, shape, dtype)


def task(*nodes, inputs=1, **rest):
    specs = tuple(InputSpec(f"x{i}", SHAPE, "bfloat16", (8192, 1), Values("normal")) for i in range(inputs))
    return Task(
        "t", "def f(): ...", "f", specs, (OutputSpec(SHAPE, "bfloat16"),), rest.pop("work", Work(2 * BYTES, 1)), graph=Graph(nodes), **rest
    )


@pytest.mark.parametrize(
    ("work", "us"),
    [
        (Work(2 * BYTES, 0), 31.2),  # softmax of the table in the benchmark's notes: 31 µs
        (Work(3 * BYTES, 0), 46.8),  # gelu·y: 47
        (Work(4096 * 32000 * 2, 0), 61.0),  # cross entropy: 61
        (Work(100_663_296, 2 * 4096**3, 2 * 4096**3, "bfloat16"), 2 * 4096**3 / H200.peak("bfloat16") * 1e6),
        (
            Work(100_663_296, 2 * 4096**3, 2 * 4096**3, "float32"),
            2 * 4096**3 / (H200.peak("tf32") / 3) * 1e6,
        ),  # three TF32 products for one
        (Work(1000, int(H200.peak("float32"))), 1e6),
    ],
)
def test_floor(work, us):
    assert floor_us(work, H200) == pytest.approx(us, rel=0.01)


def test_eager_pays_for_each_call_and_not_for_views():
    one = eager_us(task(node("a", "relu", "x0")), H200)
    two = eager_us(task(node("a", "relu", "x0"), node("b", "exp", "a")), H200)
    viewed = eager_us(task(node("a", "relu", "x0"), node("v", "view", "a"), node("t", "transpose", "v")), H200)
    assert one == pytest.approx(2 * BYTES / H200.bandwidth / 0.85 * 1e6 + 3.0)
    assert two == pytest.approx(2 * one)
    assert viewed == one


def test_an_operand_that_is_used_twice_is_read_once():
    square = eager_us(task(node("a", "mul", "x0", "x0")), H200)
    product = eager_us(task(node("a", "mul", "x0", "x1"), inputs=2), H200)
    assert product > square


def test_matrix_products_take_their_arithmetic():
    a = InputSpec("a", (4096, 4096), "float32", (4096, 1), Values("normal"))
    b = dataclasses.replace(a, name="b")
    mm = Node("c", "aten.mm.default", ({"ref": "a"}, {"ref": "b"}), {}, (4096, 4096), "float32")
    plain = Task("t", "", "f", (a, b), (), Work(1, 2 * 4096**3, 2 * 4096**3, "float32"), graph=Graph((mm,)))
    exact = eager_us(plain, H200)
    assert exact == pytest.approx(2 * 4096**3 / H200.peak("float32") / 0.8 * 1e6 + 3.0)
    assert eager_us(dataclasses.replace(plain, matmul_precision="high"), H200) == pytest.approx(
        (exact - 3.0) * H200.peak("float32") / H200.peak("tf32") + 3.0
    )


def test_without_a_graph_there_is_no_eager_time():
    assert eager_us(task(), H200) is None


@pytest.mark.parametrize(
    ("target", "warps", "registers", "shared", "blocks", "limited"),
    [
        # From NVIDIA's occupancy tables for compute capability 9.0 and 8.0.
        ("cuda:90", 4, 32, 0, 16, "registers"),
        ("cuda:90", 4, 24, 0, 16, "warps"),
        ("cuda:90", 8, 64, 0, 4, "registers"),
        ("cuda:90", 8, 65, 0, 3, "registers"),
        ("cuda:90", 4, 255, 0, 2, "registers"),
        ("cuda:90", 4, 32, 49152, 4, "shared memory"),
        ("cuda:90", 4, 32, 232448, 1, "shared memory"),
        ("cuda:90", 4, 32, 232449, 0, "shared memory"),
        ("cuda:90", 1, 16, 0, 32, "programs"),
        ("cuda:80", 4, 128, 0, 4, "registers"),
        ("cuda:80", 4, 32, 40960, 4, "shared memory"),
        ("hip:gfx942", 4, 128, 0, 4, "registers"),
        ("hip:gfx942", 4, 64, 0, 8, "registers"),
        ("hip:gfx942", 4, 64, 32768, 2, "shared memory"),
    ],
)
def test_occupancy(target, warps, registers, shared, blocks, limited):
    found = occupancy(TARGETS[target], warps, registers, shared)
    assert (found.blocks, found.limited_by) == (blocks, limited)
    assert found.occupancy == pytest.approx(blocks * warps / TARGETS[target].warps)


def test_unified_diff():
    assert unified("a\nb", "a\nc", "k1", "k2").splitlines() == ["--- k1", "+++ k2", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    assert unified("same", "same", "a", "b") == ""

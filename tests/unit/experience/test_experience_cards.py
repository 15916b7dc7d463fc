"""The shipped cards: well-formed, found where they belong, and their code compiles."""

import dataclasses
import importlib.util
import math

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from workbench.brief import Role
from workbench.candidate import Diagnosis
from workbench.graph import Graph, Node
from workbench.knowledge.experience import Library, features, seed_cards
from workbench.knowledge.experience.seeds import entries
from workbench.target import TARGETS
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

MEMORY = Role("memory traffic and layout", "move each byte once")
DIAGNOSES = {
    "build", "launch", "mismatch", "precision", "timeout", "refused", "unknown",
    "memory", "compute", "l2", "launches", "occupancy", "spills", "floor",
}  # fmt: skip
GELU = ("aten.gelu.default", (4096, 4096))
LONG = ("aten._softmax.default", (4096, 200000), -1)


def task(*nodes, dtype="float32", shape=(4096, 4096), work=10**9, target="cuda:90"):
    """A task whose graph is a chain of (op, result shape, further arguments)."""
    graph, last = [], "x"
    for number, (op, result, *args) in enumerate(nodes):
        graph.append(Node(f"n{number}", op, ({"ref": last}, *args), {}, result, dtype))
        last = f"n{number}"
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    inputs = (InputSpec("x", shape, dtype, strides, Values("normal")), InputSpec("w", shape, dtype, strides, Values("normal")))
    return Task("op", "", "op", inputs, (OutputSpec(shape, dtype),), Work(work, 1), graph=Graph(tuple(graph), (last,)), target=target)


def rms(dtype="bfloat16"):
    return task(
        ("aten.pow.Tensor_Scalar", (4096, 4096), 2),
        ("aten.mean.dim", (4096, 1), (-1,), True),
        ("aten.rsqrt.default", (4096, 1)),
        ("aten.mul.Tensor", (4096, 4096), {"ref": "x"}),
        dtype=dtype,
    )


@pytest.mark.parametrize(
    ("op", "kinds", "axes", "shapes"),
    [
        (rms(), {"normalization", "reduction"}, {"last"}, set()),
        (task(("aten._softmax.default", (64, 200000), -1, False), shape=(64, 200000)), {"softmax"}, {"last"}, {"few rows", "long rows"}),
        (task(("aten.sum.dim_IntList", (4096,), (0,))), {"reduction"}, {"inner"}, set()),
        (task(("aten.sum.default", ())), {"reduction"}, {"all"}, {"few rows", "long rows"}),
        (task(("aten.linalg_vector_norm.default", (), 2.0)), {"reduction"}, {"all"}, {"few rows", "long rows"}),
        (task(("aten.linalg_vector_norm.default", (4096,), 2.0, (1,))), {"reduction"}, {"last"}, set()),
        (task(("aten.amax.default", (4096, 1), (1, 2)), shape=(4096, 8, 8)), {"reduction"}, {"several"}, {"short rows"}),
        (task(("aten.native_layer_norm.default", (4096, 512), (512,)), shape=(4096, 512)), {"normalization"}, {"last"}, {"short rows"}),
        (task(("aten.max.other", (4096, 4096), {"ref": "w"})), {"pointwise"}, set(), set()),
        (task(("aten.topk.default", (4096, 5), 5)), {"sort"}, {"last"}, set()),
        (task(("aten.add_.Tensor", (8,), 1.0), shape=(8,), work=64), {"pointwise"}, set(), {"small"}),
        (task(("aten.mm.default", (4096, 4096), {"ref": "w"}), GELU), {"matmul", "transcendental"}, set(), set()),
        (task(("aten.view.default", (16777216,)), ("aten.tanh.default", (16777216,))), {"pointwise", "transcendental"}, set(), set()),
    ],
    ids=lambda value: value.graph.nodes[0].op if isinstance(value, Task) else None,
)  # fmt: skip
def test_features_are_read_from_the_graph(op, kinds, axes, shapes):
    found = features(op)
    assert (set(found.kinds), set(found.axes), set(found.shapes)) == (kinds, axes, shapes)


def test_a_task_without_a_graph_still_gets_cards():
    bare = dataclasses.replace(rms(), graph=Graph())
    assert features(bare).kinds == () and features(bare).dtypes == ("bfloat16",)
    assert Library.shipped().retrieve(bare, Diagnosis("e", "build", "arange's range must be a power of 2", ""))


def test_shipped_cards_are_well_formed():
    cards = seed_cards()
    assert len(cards) >= 60 and len({card.id for card in cards}) == len(cards)
    for card in cards:
        assert card.effect is None and card.trials == 0 and 0.3 <= card.confidence <= 0.8
        assert "@triton.jit" in card.code and len(card.shown().advice) < 2500 and len(card.advice) > 80
        assert set(card.trigger.diagnoses) <= DIAGNOSES and set(card.trigger.targets) <= set(TARGETS)
        assert card.trigger.kinds or card.trigger.diagnoses or card.trigger.shapes


@pytest.mark.parametrize(
    ("op", "diagnosis", "card"),
    [
        (rms(), ("memory", "memory bound, 1.5× over the floor", "read the row once"), "row-in-registers"),
        (rms(), ("mismatch", "the last tile of dim 1 is wrong", "mask the tail tile"), "mask-with-the-neutral-element"),
        (rms(), ("build", "Expected dtype ['fp32', 'fp64'] but got bf16", "cast before exp"), "cast-before-math"),
        (rms(), ("build", "arange's range must be a power of 2", ""), "power-of-two-blocks"),
        (rms(), ("build", "Cannot access global variable N from within @jit'ed function", ""), "constexpr-not-global"),
        (rms(), ("spills", "64 bytes spilled", "smaller tile"), "bound-registers-before-tiles"),
        (task(LONG, shape=(4096, 200000)), ("memory", "reads the row three times", ""), "online-softmax"),
        (task(("aten.sum.dim_IntList", (8,), (1,)), shape=(8, 10**6)), ("occupancy", "8 programs", "split the row"), "split-long-rows"),
        (task(("aten.sum.dim_IntList", (4096,), (0,))), ("memory", "narrow accesses", ""), "column-reduction"),
        (task(("aten.mm.default", (64, 64), {"ref": "w"})), ("precision", "the dot is tf32", ""), "fp32-product-keeps-fp32"),
        (task(("aten.mm.default", (64, 64), {"ref": "w"}), GELU), ("launches", "two", ""), "epilogue-in-the-accumulator"),
        (task(("aten.tanh.default", (99,)), shape=(99,), work=800), ("launches", "launch bound", ""), "one-launch-for-a-small-op"),
        (task(("aten.embedding.default", (99, 64))), None, "gather-whole-rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_the_card_that_helps_is_among_the_first_three(op, diagnosis, card):
    found = Library.shipped().retrieve(op, diagnosis and Diagnosis("e", *diagnosis), MEMORY, 3)
    assert card in [one.id for one in found]


def test_cards_for_other_ops_dtypes_and_targets_stay_out():
    library = Library.shipped()
    for role in (None, MEMORY, "instructions and algorithm"):
        for diagnosis in (None, Diagnosis("e", "compute", "tensor cores idle", "use tensor descriptors")):
            ids = {card.id for card in library.retrieve(rms(), diagnosis, role, 50)}
            assert not ids & {"matmul-grouped-tiles", "online-softmax", "descriptor-loads", "one-launch-for-a-small-op"}
    product = task(("aten.mm.default", (4096, 4096), {"ref": "w"}), dtype="bfloat16", target="hip:gfx942")
    assert "descriptor-loads" not in {card.id for card in library.retrieve(product, None, None, 50)}
    assert "descriptor-loads" in {card.id for card in library.retrieve(dataclasses.replace(product, target="cuda:90"), None, None, 50)}


SAMPLE = {
    "row-in-registers",
    "variance-in-one-pass",
    "tanh-and-gelu",
    "fp32-product-keeps-fp32",
    "descriptor-loads",
    "pool-windows-in-registers",
}
GPUS = {"cuda:80": ("cuda", 80, 32), "cuda:90": ("cuda", 90, 32), "hip:gfx942": ("hip", "gfx942", 64)}
COMPILED = [
    pytest.param(entry, target, id=f"{entry['id']}-{target}", marks=() if entry["id"] in SAMPLE else pytest.mark.full)
    for entry in entries()
    for target in entry.get("targets", GPUS)
]


@pytest.mark.parametrize(("entry", "target"), COMPILED)
def test_the_code_of_a_card_compiles(entry, target, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "card.py"  # a kernel's source is read from its file
    prelude = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n\n"
    path.write_text(prelude + entry["code"].strip("\n") + "\n")
    spec = importlib.util.spec_from_file_location("card", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = [value for value in vars(module).values() if isinstance(value, triton.runtime.JITFunction)]
    source = ASTSource(
        fn=kernels[-1],
        signature=entry["signature"] | dict.fromkeys(entry["constexprs"], "constexpr"),
        constexprs={(kernels[-1].arg_names.index(name),): value for name, value in entry["constexprs"].items()},
    )
    compiled = triton.compile(source, target=GPUTarget(*GPUS[target]))
    assert any(write in compiled.asm["ttir"] for write in ("tt.store", "tt.descriptor_store", "tt.atomic_rmw"))
    assert compiled.metadata.shared <= TARGETS[target].block_shared_bytes
    if not target.startswith("cuda"):
        return
    if entry["id"] == "fp32-product-keeps-fp32":
        assert "inputPrecision = tf32" not in compiled.asm["ttir"]
    if "rows" in entry["id"] or entry["id"] == "row-in-registers":
        assert ".local" not in compiled.asm["ptx"]

import pytest

from workbench.candidate import Candidate, Evaluation, ModelledTime, Resources, Verdict
from workbench.explain.strategy import describe

KERNEL = (
    "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n{body}\ndef f(x):\n    k[(1,)](x, 1, B=64)\n"
)


def words(body="    pass", **evaluation):
    candidate = Candidate("k1", "triton", KERNEL.format(body=body), "f")
    return dict(word.split(":") for word in describe(candidate, Evaluation("k1.0", "k1", "t", Verdict.RIGHT, **evaluation)))


@pytest.mark.parametrize(
    ("body", "key", "value"),
    [
        ("    pass", "pass", "one"),
        ("    for i in range(n):\n        tl.load(x)", "pass", "loop"),
        ("    for i in range(n):\n        for j in range(n):\n            tl.load(x)", "pass", "loop"),
        ("    for i in range(n):\n        tl.load(x)\n    for i in range(n):\n        tl.load(x)", "pass", "loops"),
        ("    for i in tl.static_range(4):\n        tl.load(x)", "pass", "one"),
        ("    tl.dot(x, x)", "product", "dot"),
        ("    tl.atomic_add(x, 1)", "combine", "atomic"),
        ("    tl.cumsum(x)", "combine", "scan"),
        ("    tl.make_block_ptr(x)", "address", "block"),
        ("    for i in range(tl.program_id(0), n, tl.num_programs(0)):\n        tl.load(x)", "persistent", "yes"),
        ("    step = tl.num_programs(0)\n    for i in range(0, n, step):\n        tl.load(x)", "persistent", "yes"),
        ("    for i in range(0, n, B):\n        tl.load(x)", "persistent", "no"),
    ],
)
def test_what_the_code_shows(body, key, value):
    assert words(body)[key] == value


def test_what_the_compiled_kernels_show():
    resources = (
        Resources("a", (8, 1, 1), launches=2, warps=4, stages=2, occupancy=0.2, waves=0.1, vector_bytes=4),
        Resources("b", (4096, 1, 1), warps=8, stages=3, occupancy=0.9, waves=9.0, vector_bytes=16, tensor_cores=True),
    )
    found = words(resources=resources, labels=("calls torch.mm",))
    assert found["launches"] == "many" and found["library"] == "yes" and found["warps"] == "8" and found["cores"] == "tensor"
    assert found["occupancy"] == "high" and found["waves"] == "many" and found["vector"] == "16" and found["stages"] == "3"
    modelled = ModelledTime(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2, "memory")
    assert words(resources=resources[:1], modelled=modelled)["launches"] == "2"


def test_same_strategy_same_words_whatever_the_names():
    one = describe(Candidate("k1", "triton", KERNEL.format(body="    tl.load(x)"), "f"), Evaluation("a", "k1", "t", Verdict.RIGHT))
    two = describe(
        Candidate("k2", "triton", KERNEL.format(body="    tl.load(x) # other"), "f", plan="x"), Evaluation("b", "k2", "t", Verdict.WRONG)
    )
    assert one == two
    assert describe(Candidate("k3", "triton", "def f(:", "f"), Evaluation("c", "k3", "t", Verdict.DOES_NOT_BUILD))

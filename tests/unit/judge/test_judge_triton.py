"""Triton candidates judged without a GPU, through the whole judge: recorder, interpreter, sandbox and all."""

from __future__ import annotations

import pytest
from conftest import candidate, make_task, spec
from triton_candidates import HEAD, REFERENCES, RIGHT, WRONG

from workbench.candidate import Verdict
from workbench.graph import Graph, Node
from workbench.judge.judge import Judge

TASKS = {
    "softmax": make_task("softmax", REFERENCES["softmax"], [spec("x", (512, 1024))], [((512, 1024), "float32")]),
    "rmsnorm": make_task(
        "rmsnorm", REFERENCES["rmsnorm"], [spec("x", (256, 2048), "bfloat16"), spec("w", (2048,), "bfloat16")],
        [((256, 2048), "bfloat16")],
    ),
    "gated": make_task(
        "gated", REFERENCES["gated"], [spec("x", (256, 1024), "bfloat16"), spec("y", (256, 1024), "bfloat16")],
        [((256, 1024), "bfloat16")],
    ),
    "linear": make_task(
        "linear", REFERENCES["linear"], [spec("x", (128, 256)), spec("w", (256, 192)), spec("b", (192,))], [((128, 192), "float32")],
    ),
    "loss": make_task(
        "loss", REFERENCES["loss"], [spec("x", (64, 2000)), spec("t", (64,), "int64", "integers", lo=0, hi=2000)], [((), "float32")],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def judges(nursery):
    made = {}

    def judge(name):
        if name not in made:
            made[name] = Judge(TASKS[name], device="cpu", seed=7, nursery=nursery)
        return made[name]

    yield judge
    for other in made.values():
        other.close()


CASES = [
    case
    for name in TASKS
    for case in [(name, "right", RIGHT[name]), *[(which, words, source) for words, (which, source) in WRONG.items() if which == name]]
]


@pytest.mark.parametrize(("name", "what", "source"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_candidates_get_the_verdict_that_they_deserve(judges, name, what, source):
    found = judges(name).evaluate(candidate(source, name), {}, id="k1.0")
    print(f"{name}: {what}: {found.verdict.value}: {found.reason} {dict(found.stage_ms)}")
    assert found.seed == 7 and found.mode == "quick" and found.environment.sandbox
    if what != "right":
        assert found.verdict is Verdict.WRONG, found
        assert found.witness is not None and found.timing is None
        return
    assert found.verdict is Verdict.RIGHT, found
    assert found.judged_by.startswith("interpreter (") and "×" in found.judged_by
    assert found.modelled is not None and found.timing is not None and found.timing.modelled and found.speedup is None
    assert found.resources and found.resources[0].registers > 0
    assert len(found.input_sets) >= 4 and found.error_ratio <= 1


def test_a_tf32_product_is_lower_precision_though_the_interpreter_can_not_see_it(judges):
    source = RIGHT["linear"].replace(', input_precision="ieee"', ', input_precision="tf32"')
    found = judges("linear").evaluate(candidate(source, "linear"), {}, id="k1.0")
    assert found.verdict is Verdict.LOWER_PRECISION and "TF32" in found.reason, found


def test_what_does_not_compile_names_the_line(judges):
    source = RIGHT["linear"].replace("tl.maximum(acc, 0.0)", "tl.no_such_thing(acc)")
    found = judges("linear").evaluate(candidate(source, "linear"), {}, id="k1.0")
    assert found.verdict is Verdict.DOES_NOT_BUILD and "no_such_thing" in found.reason, found


def test_the_tunable_point_is_what_is_judged(judges):
    found = judges("gated").evaluate(candidate(RIGHT["gated"], "gated"), {"BLOCK": 2048}, id="k1.1")
    assert found.verdict is Verdict.RIGHT and found.parameters == {"BLOCK": 2048}
    assert found.resources[0].grid[0] == 256 * 1024 // 2048


def test_a_launcher_may_refuse_what_the_task_does_not_list(judges):
    guard = "    if x.shape[1] % 128:\n        raise ValueError('rows must be a multiple of 128')\n"
    source = RIGHT["softmax"].replace("def softmax(x):\n", "def softmax(x):\n" + guard)
    found = judges("softmax").evaluate(candidate(source, "softmax"), {}, id="k1.0")
    assert found.verdict is Verdict.RIGHT, found
    assert any(label.startswith("does not support") for label in found.labels)
    everything = RIGHT["softmax"].replace(
        "def softmax(x):\n", "def softmax(x):\n    if x.shape[0] != 512:\n        raise ValueError('512 rows')\n"
    )
    found = judges("softmax").evaluate(candidate(everything, "softmax"), {}, id="k1.0")
    assert found.verdict is Verdict.NOT_JUDGED and "512 rows" in found.reason, found


def test_what_the_interpreter_lacks_is_not_judged(judges):
    source = RIGHT["softmax"].replace(
        "    e = tl.exp(v - tl.max(v, 0))\n",
        "    e = tl.exp(v - tl.max(v, 0))\n"
        '    e = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [e], dtype=tl.float32, is_pure=True, pack=1)\n',
    )
    found = judges("softmax").evaluate(candidate(source, "softmax"), {}, id="k1.0")
    assert found.verdict is Verdict.NOT_JUDGED and "interpreter" in found.reason, found


def test_cuda_needs_a_gpu(judges):
    found = judges("softmax").evaluate(
        candidate("CUDA = r''\nKERNELS = ()\ndef softmax(x): return x\n", "softmax", backend="cuda"), {}, id="k1.0"
    )
    assert found.verdict is Verdict.NOT_JUDGED and "GPU" in found.reason


def test_a_task_is_prepared_with_its_floor_and_modelled_baseline(judges):
    prepared = judges("softmax").prepare(None)
    assert prepared.floor_us > 0 and prepared.device.startswith("no GPU") and not prepared.degenerate
    assert prepared.baselines[1].timing is None and prepared.baselines[1].reason


def test_models_are_redrawn_and_judged(nursery):
    reference = (
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(n))\n        self.shift = torch.nn.Parameter(torch.zeros(n))\n"
        "    def forward(self, x):\n        return x * self.scale + self.shift\n"
    )
    kernel = (
        "@triton.jit\ndef k(x, s, b, y, n, B: tl.constexpr):\n    r = tl.program_id(0)\n    c = tl.arange(0, B)\n    m = c < n\n"
        "    v = tl.load(x + r * n + c, mask=m)\n    o = v * tl.load(s + c, mask=m) + tl.load(b + c, mask=m)\n"
        "    tl.store(y + r * n + c, o, mask=m)\n\n"
    )
    new = (
        HEAD + kernel + reference.replace("class Model", "class ModelNew").replace("import torch\n", "").replace(
            "        return x * self.scale + self.shift\n",
            "        y = torch.empty_like(x)\n        k[(x.shape[0],)](x, self.scale, self.shift, y, x.shape[1], B=64)\n        return y\n",
        )
    )  # fmt: skip
    task = make_task("Model", reference, [spec("x", (96, 48))], [((96, 48), "float32")], format="model", init_args=(48,))
    judge = Judge(task, device="cpu", nursery=nursery)
    try:
        found = judge.evaluate(candidate(new, "ModelNew"), {}, id="k1.0")
        assert found.verdict is Verdict.RIGHT and "parameters not redrawn" not in found.labels, found
        ignored = new.replace(" + tl.load(b + c, mask=m)", "")
        found = judge.evaluate(candidate(ignored, "ModelNew"), {}, id="k1.1")
        assert found.verdict is Verdict.WRONG, found
        renamed = new.replace("self.scale", "self.gain")
        found = judge.evaluate(candidate(renamed, "ModelNew"), {}, id="k1.2")
        assert found.verdict is Verdict.RIGHT and "parameters not redrawn" in found.labels, found
    finally:
        judge.close()


def test_a_degenerate_op_is_told(nursery):
    source = "import torch\ndef flat(x):\n    return torch.softmax(x, -1).sum(-1)\n"
    graph = Graph((Node("a", "aten.sum.dim_IntList", ({"ref": "x"},)),), ("a",))
    judge = Judge(make_task("flat", source, [spec("x", (64, 256))], [((64,), "float32")], graph=graph), device="cpu", nursery=nursery)
    try:
        prepared = judge.prepare(None)
        assert prepared.degenerate and any("degenerate" in note for note in prepared.notes)
    finally:
        judge.close()

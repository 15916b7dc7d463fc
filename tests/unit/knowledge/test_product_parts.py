"""Float32 products whose operands are split into bfloat16 parts ahead."""

from dataclasses import replace

import pytest
import torch
from expert_lab import run_interpreted, trace

from workbench.build.tune import read_tune
from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.knowledge.product_parts import SPLIT_AHEAD
from workbench.target import get_target

AHEAD = {"precision": SPLIT_AHEAD}


def product(a, b):
    return a @ b


def both_transposed(a, b):
    return torch.relu(a.t() @ b.t())


def squared(a):
    return a @ a


def meta(*shape):
    return torch.empty(shape, device="meta")


def precisions(*shapes, target="cuda:90"):
    task = trace(product, *[meta(*shape) for shape in shapes], name="product")
    return experts.choices("matmul", replace(task, target=target))["precision"]


def test_parts_are_made_ahead_where_that_costs_less_than_it_saves():
    assert precisions((4096, 4096), (4096, 4096))[:2] == (SPLIT_AHEAD, "bf16x6")
    assert precisions((300, 500), (500, 400))[:2] == ("bf16x6", SPLIT_AHEAD)
    assert SPLIT_AHEAD not in precisions((64, 4096), (4096, 64))
    assert SPLIT_AHEAD not in precisions((32768, 32), (32, 32768)) or precisions((32768, 32), (32, 32768))[0] == SPLIT_AHEAD
    assert SPLIT_AHEAD not in precisions((4096, 4096), (4096, 4096), target="hip:gfx942")


@pytest.mark.parametrize("residents", ["one", "two"])
def test_every_tile_builds_without_spills(residents, tmp_path):
    task = trace(product, meta(4096, 4096), meta(4096, 4096), name="product")
    source = experts.write("matmul", task, {**AHEAD, "residents": residents})
    for tile in read_tune(source)["TILE"]:
        recording = record(source, task.candidate_entry, {"TILE": tile}, task.inputs, get_target("cuda:90"), directory=tmp_path)
        assert recording.error is None, tile
        parts, main = recording.launches[0], recording.launches[-1]
        assert parts.resources.spill_bytes == main.resources.spill_bytes == 0, (tile, main.resources)
        assert parts.resources.vector_bytes == main.resources.vector_bytes == 16
        assert main.resources.tensor_cores and main.blocks >= (2 if residents == "two" else 1), tile


@pytest.mark.parametrize(
    "op, shapes",
    [
        (product, [(257, 70), (70, 300)]), (product, [(3, 260, 40), (3, 40, 257)]), (both_transposed, [(70, 260), (300, 70)]),
        (squared, [(260, 260)]),
    ],
)  # fmt: skip
def test_it_has_float32s_digits(op, shapes, tmp_path):
    torch.manual_seed(0)
    inputs = [torch.randn(shape) * 10 ** torch.linspace(-3, 3, shape[-1]) for shape in shapes]
    task = trace(op, *[meta(*shape) for shape in shapes], name=op.__name__)
    source = experts.write("matmul", task, {**AHEAD, "residents": "two"})
    got = run_interpreted([{"source": source, "entry": task.candidate_entry, "inputs": inputs}], tmp_path)[0]
    assert not isinstance(got, str), got
    exact = op(*[item.double() for item in inputs])
    size = op(*[item.double().abs() for item in inputs]).abs() + 1e-30
    own = ((op(*inputs).double() - exact).abs() / size).max()
    assert ((got[0].double() - exact).abs() / size).max() <= 2 * own + 2e-7


def test_infinite_and_missing_operands_give_what_float32_gives(tmp_path):
    torch.manual_seed(0)
    a, b = torch.randn(257, 40), torch.randn(40, 260)
    a[3, 5], a[4, 6], b[7, 9], a[8, 0], a[9, 1] = float("inf"), float("-inf"), float("nan"), 1e38, 2.0**-120
    b[5, 20] = 0.0
    task = trace(product, meta(257, 40), meta(40, 260), name="product")
    source = experts.write("matmul", task, {**AHEAD, "residents": "two"})
    got = run_interpreted([{"source": source, "entry": task.candidate_entry, "inputs": [a, b]}], tmp_path)[0]
    assert not isinstance(got, str), got
    torch.testing.assert_close(got[0], a @ b, equal_nan=True, rtol=1e-5, atol=1e-5)

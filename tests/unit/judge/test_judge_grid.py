"""Results of fewer bits than their dtype has: told where bounds are too wide, and never where an honest result may look so."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from conftest import candidate, make_task, spec

from workbench.candidate import Verdict
from workbench.capture.references import Reference
from workbench.judge.correctness.expected import Error, ExpectedOutput, expect
from workbench.judge.correctness.grid import CHANCE, Grid
from workbench.judge.judge import Judge

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def scalars(count, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return [(torch.rand((), generator=generator, dtype=torch.float64) * 3 + 5) * scale for _ in range(count)]


def known(truth, dtype):
    return ExpectedOutput(truth.to(dtype), truth, Error(), float(truth.double().square().mean().sqrt()))


def after(truths, dtype, give, **options):
    grid = Grid(**options)
    for truth in truths:
        grid.add(give(truth), known(truth, dtype))
    return grid


COARSE = [(BF16, torch.float8_e4m3fn, 3), (BF16, torch.float8_e5m2, 2), (FP16, BF16, 7), (FP16, torch.float8_e4m3fn, 3)]


@pytest.mark.parametrize(("dtype", "inner", "bits"), COARSE)
@pytest.mark.parametrize("seed", range(5))
def test_scalars_that_went_through_a_coarser_type_are_told(dtype, inner, bits, seed):
    kept = after(scalars(30, seed), dtype, lambda truth: truth.to(inner).to(dtype)).kept_bits(dtype)
    assert kept is not None and bits <= kept <= 7


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_one_tensor_is_enough(dtype):
    truth = torch.randn(1000, dtype=torch.float64)
    assert after([truth], dtype, lambda t: t.to(torch.float8_e5m2).to(dtype)).kept_bits(dtype) is not None


def test_single_precision_needs_no_such_question():
    grid = after(scalars(30, 1), FP32, lambda truth: truth.to(BF16).to(FP32))  # its bounds are ten thousand times too narrow for that
    assert grid.kept_bits(FP32) is None and not grid.suspicious


def test_what_the_policy_grants_is_no_fault():
    give = lambda truth: truth.to(BF16).to(FP16)  # noqa: E731
    assert after(scalars(30, 2), FP16, give, allowed=2.0**-8).kept_bits(FP16) is None
    assert after(scalars(30, 2), FP16, give).kept_bits(FP16) == 7


ON_THE_GRID = {
    "whole numbers": lambda x: x.round(),
    "thresholds": lambda x: (x > 0).to(x.dtype),
    "powers of two": lambda x: torch.exp2(x.float().round()).to(x.dtype),
    "one of a few": lambda x: F.one_hot((x.float() * 2).long() % 4, 4).to(x.dtype),
    "a ReLU of whole numbers": lambda x: F.relu(x.round()),
    "whole numbers over eight": lambda x: (x * 8).round() / 8,
    "hardly ever anything": lambda x: F.dropout(x, 0.0) * 0,
    "signs": torch.sign,
}


@pytest.mark.parametrize("dtype", [BF16, FP16])
@pytest.mark.parametrize("case", ON_THE_GRID)
def test_results_that_have_few_bits_by_their_nature_say_nothing(case, dtype):
    x = torch.randn(64, 50, generator=torch.Generator().manual_seed(3)).to(dtype)
    expected = expect(Reference(ON_THE_GRID[case], {}), [x])
    grid = Grid()
    grid.add(ON_THE_GRID[case](x), expected.outputs[0])
    assert grid.kept_bits(dtype) is None and not grid.suspicious


def test_one_who_is_more_exact_than_a_reference_that_scatters_around_one_is_honest():
    exact = torch.ones(200, dtype=torch.float64)
    scattered = (exact + 0.03 * torch.randn(200, generator=torch.Generator().manual_seed(4))).to(BF16)
    assert len(scattered.unique()) > 8
    grid = Grid()
    grid.add(exact.to(BF16), ExpectedOutput(scattered, exact, Error(), 1.0))
    assert grid.kept_bits(BF16) is None and not grid.suspicious


HONEST = {
    "sum": lambda x: x.sum(),
    "mean of squares": lambda x: x.square().mean(),
    "loss": lambda x: F.cross_entropy(x, torch.arange(len(x)) % x.shape[1]),
    "norm": lambda x: x.norm(),
    "log of sums": lambda x: x.logsumexp((0, 1)),
    "variance": lambda x: x.var(),
}


@pytest.mark.parametrize("dtype", [BF16, FP16])
@pytest.mark.parametrize("case", HONEST)
def test_honest_scalars_have_all_their_bits(case, dtype):
    op = HONEST[case]
    for kernel in (op, lambda x: op(x.float()).to(dtype), lambda x: op(x.double()).to(dtype)):
        for seed in range(10):
            grid = Grid()
            for size in range(8, 20):
                x = torch.randn(size, 5 * size, generator=torch.Generator().manual_seed(100 * seed + size)).to(dtype)
                grid.add(kernel(x), expect(Reference(op, {}), [x]).outputs[0])
            assert grid.kept_bits(dtype) is None, (case, seed)


def test_the_chance_is_what_the_bound_says():
    # The worst honest kernel: its error scatters over many units, so that nothing of the truth's last bits is left.
    generator = torch.Generator().manual_seed(5)
    count, alive = 20_000, {1: 0, 2: 0, 3: 0}
    for _ in range(count):
        truths = torch.rand(3, generator=generator, dtype=torch.float64) * 0.9 + 1.05
        noise = (torch.rand(3, generator=generator, dtype=torch.float64) - 0.5) * 0.1
        own = truths.to(BF16).view(torch.int16) & 7
        results = (truths + noise).to(BF16).view(torch.int16) & 7
        for places in alive:
            alive[places] += bool(((own[:places] != 0) & (results[:places] == 0)).all())
    for places, found in alive.items():
        assert found / count < 7.0**-places * 1.3 + 3 / count
    assert 7.0**-8 + 15.0**-6 + 31.0**-5 + 63.0**-4 < 1e-6 and 7.0**-7 > CHANCE > 7.0**-8


LOSS = "import torch\nimport torch.nn.functional as F\n\ndef loss(x, t):\n    return F.cross_entropy(x, t)\n"


@pytest.fixture(scope="module")
def judge(nursery):
    inputs = [spec("x", (64, 2000), "bfloat16"), spec("t", (64,), "int64", "integers", lo=0, hi=2000)]
    made = Judge(make_task("loss", LOSS, inputs, [((), "bfloat16")]), device="host", nursery=nursery, baselines=("eager",))
    yield made
    made.close()


def test_a_loss_of_eight_bits_is_not_right(judge):
    source = LOSS.replace("F.cross_entropy(x, t)", "F.cross_entropy(x, t).to(torch.float8_e4m3fn).to(x.dtype)")
    for number in range(6):
        found = judge.evaluate(candidate(source, "loss"), {}, id=f"k1.{number}")
        assert found.verdict is not Verdict.RIGHT, found
        if found.verdict is Verdict.LOWER_PRECISION:
            assert "its results have at most 3 bits behind the binary point" in found.labels or "at most 4" in " ".join(found.labels), found

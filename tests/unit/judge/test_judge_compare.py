"""Honest results pass, in whatever order they accumulate; everything else is refused, and the words say where."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from workbench.capture.references import Reference
from workbench.judge.correctness.compare import TF32, Comparison, compare
from workbench.judge.correctness.expected import expect


def judged(reference, inputs, output, **options) -> Comparison:
    expected = expect(Reference(reference, {}, products=reference is torch.matmul), inputs)
    if callable(output):
        output = output(*[item.clone() for item in inputs])
    return compare(output, expected.outputs[0], **options)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randn(64, 1000, generator=torch.Generator().manual_seed(0))


def softmax(x):
    return torch.softmax(x, -1)


def exp2_softmax(x):
    z = torch.exp2((x - x.amax(-1, keepdim=True)) * 1.44269504)
    return z / z.sum(-1, keepdim=True)


def layer_norm(x):
    return F.layer_norm(x, (x.shape[-1],))


def two_pass_norm(x):
    mean = x.sum(-1, keepdim=True) * (1 / x.shape[-1])
    d = x - mean
    return d * torch.rsqrt((d * d).sum(-1, keepdim=True) * (1 / x.shape[-1]) + 1e-5)


def one_pass_norm(x):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt((x * x).mean(-1, keepdim=True) - mean * mean + 1e-5)


def rms_norm(x):
    return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def cumsum(x):
    return x.cumsum(-1)


def chunked_cumsum(x):
    out, carry = torch.empty_like(x), torch.zeros(x.shape[0])
    for column in range(x.shape[1]):
        carry = carry + x[:, column]
        out[:, column] = carry
    return out


def split_k(a, b):
    total = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 16):
        total = total + a[:, start : start + 16] @ b[start : start + 16]
    return total


def tf32(x):
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("shape", [(64, 1000), (1, 1000), (257, 1), (3, 3)])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_honest_norms_pass_at_any_shape_and_offset(shape, offset):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) + offset
    found = judged(layer_norm, [x], two_pass_norm)
    assert found.right and not found.precision, found


def test_honest_orders_of_accumulation_pass(x):
    a, b = (
        torch.randn(64, 2048, generator=torch.Generator().manual_seed(2)),
        torch.randn(2048, 48, generator=torch.Generator().manual_seed(3)),
    )
    for found in (
        judged(torch.matmul, [a, b], split_k),
        judged(cumsum, [x], chunked_cumsum),
        judged(cumsum, [x + 5], chunked_cumsum),
        judged(softmax, [x], exp2_softmax),
        judged(layer_norm, [x], one_pass_norm),
    ):
        assert found.right and not found.precision, found


def test_more_exact_than_the_reference_passes(x):
    half = x.bfloat16()
    found = judged(lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True)), [half], lambda x: rms_norm(x))
    assert found.right and not found.precision


def test_unsafe_variance_is_wrong_where_the_mean_is_large(x):
    assert not judged(layer_norm, [x + 1000], one_pass_norm).right


def test_softmax_without_the_maximum_overflows(x):
    found = judged(softmax, [x * 64], lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True))
    assert not found.right and "NaN" in found.pattern


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda y: torch.zeros_like(y), "zeros"),
        (lambda y: y * 1.5, "scaled by 1.5"),
        (lambda y: y * 1.002, "scaled by 1.002"),
        (lambda y: y + 1e-5, "shifted by 1e-05"),
        (lambda y: torch.cat([y[:, :992], torch.zeros(64, 8)], 1), "last 8 of 1000 in dim 1"),
        (lambda y: torch.cat([y[:60], torch.full((4, 1000), math.nan)]), "NaN"),
        (lambda y: y.flip(0), "every element"),
        (lambda y: torch.full_like(y, float(y.mean())), "one constant"),
    ],
)
def test_bad_softmax_is_wrong_and_the_words_say_how(x, make, word):
    found = judged(softmax, [x], make(softmax(x)))
    assert not found.right
    assert word in found.pattern or word in found.reason, found
    assert found.ratio > 1 and found.bound is not None and len(found.index) == 2


def test_zeros_are_wrong_even_where_every_value_is_tiny():
    x = torch.randn(2, 100_000, generator=torch.Generator().manual_seed(4))
    assert not judged(softmax, [x], torch.zeros_like(x)).right


def test_one_element_off_is_wrong_and_named(x):
    y = softmax(x)
    y[17, 423] += 3 * float(y.square().mean().sqrt())
    found = judged(softmax, [x], y)
    assert not found.right and found.index == (17, 423) and found.pattern == "one element"
    assert found.matched == pytest.approx(1 - 1 / 64_000)


def test_lower_precision_is_neither_right_nor_wrong(x):
    a, b = (
        torch.randn(64, 512, generator=torch.Generator().manual_seed(5)),
        torch.randn(512, 64, generator=torch.Generator().manual_seed(6)),
    )
    assert judged(torch.matmul, [a, b], lambda a, b: tf32(a) @ tf32(b)).precision == "TF32"
    assert judged(torch.matmul, [a, b], lambda a, b: a.bfloat16().float() @ b.bfloat16().float()).precision == "bf16"
    allowed = judged(torch.matmul, [a, b], lambda a, b: tf32(a) @ tf32(b), allowed=TF32)
    assert allowed.right and not allowed.precision
    assert judged(softmax, [x], lambda x: torch.softmax(x.bfloat16(), -1).float()).precision == "bf16"


@pytest.mark.parametrize("low", (-1.0, 0.0))
def test_operands_that_are_cut_off_are_tf32_and_no_bias(low):
    """What tensor cores do: each product is a little too small, which shows in every element where all have one sign."""
    generator = torch.Generator().manual_seed(7)
    a, b = (torch.empty(shape).uniform_(low, 1.0, generator=generator) for shape in ((64, 512), (512, 48)))

    def cut(x):
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    assert judged(torch.matmul, [a, b], lambda a, b: cut(a) @ cut(b)).precision == "TF32"
    allowed = judged(torch.matmul, [a, b], lambda a, b: cut(a) @ cut(b), allowed=TF32)
    assert allowed.right and not allowed.precision
    for factor in (1.0015, 0.996):  # too large, or too small by more than cutting off makes it
        assert judged(torch.matmul, [a, b], lambda a, b, by=factor: (a @ b) * by, allowed=TF32).reason


def test_a_share_that_is_missing_is_only_for_products(x):
    assert not judged(softmax, [x], lambda x: softmax(x) * (1 - 2.0**-11)).right


def test_a_systematic_error_hides_in_no_dtype(x):
    half = x.bfloat16()
    found = judged(rms_norm, [half], lambda x: (rms_norm(x).float() * 1.004).bfloat16())
    assert not found.right and "systematic" in found.reason
    assert judged(rms_norm, [half], rms_norm).right


def test_infinities_and_nans_stand_where_the_reference_has_them():
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(7))
    mask = torch.triu(torch.full((8, 64), -math.inf), 1)

    def masked(x, mask):
        return x + mask

    assert judged(masked, [x, mask], masked).right
    assert not judged(masked, [x, mask], torch.nan_to_num(x + mask, neginf=-1e30)).right
    assert not judged(masked, [x, mask], -masked(-x, mask)).right


def test_integers_are_exact_and_ties_are_free():
    x = torch.randn(32, 100, generator=torch.Generator().manual_seed(8)).round()
    last = 99 - x.flip(-1).argmax(-1)
    assert judged(lambda x: x.argmax(-1), [x], last).right
    assert not judged(lambda x: x.argmax(-1), [x], x.argmin(-1)).right
    assert not judged(lambda x: x.argmax(-1), [x], torch.full((32,), 100)).right
    assert not judged(lambda x: (x > 0).sum(-1), [x], (x >= 0).sum(-1)).right


def test_topk_indices_must_differ_from_each_other():
    x = torch.ones(4, 16)
    indices = x.topk(3).indices
    reference = Reference(lambda x: list(torch.topk(x, 3)), {})
    right = expect(reference, [x]).outputs[1]
    assert compare(15 - indices, right).right
    assert not compare(torch.zeros_like(indices), right).right


def test_truth_goes_through_casts_inside_the_reference():
    x = torch.randn(16, 300, generator=torch.Generator().manual_seed(9)).half()
    expected = expect(Reference(lambda x: (x.float() @ x.float().T).half(), {}), [x])
    exact = x.double() @ x.double().T
    assert torch.equal(expected.outputs[0].truth, exact) and not expected.note


def test_an_op_that_refuses_double_is_reported():
    x = torch.randn(16, generator=torch.Generator().manual_seed(10))
    expected = expect(Reference(lambda x: x.view(torch.int32).view(torch.float32) * 2, {}), [x])
    assert expected.note.startswith("fp32 truth")
    assert compare(x * 2, expected.outputs[0]).right and not compare(x, expected.outputs[0]).right


def test_empty_and_scalar_outputs():
    assert judged(lambda x: x.sum(), [torch.ones(5)], torch.tensor(5.0)).right
    assert judged(lambda x: x * 2, [torch.empty(0, 3)], torch.empty(0, 3)).right


def test_the_reference_changing_its_input_is_seen():
    expected = expect(Reference(lambda x: x.add_(1), {}), [torch.ones(3)])
    assert expected.mutated == (0,) and torch.equal(expected.outputs[0].truth, torch.full((3,), 2.0, dtype=torch.float64))


def honest(reference, kernel, *inputs):
    found = compare(kernel(*inputs), expect(Reference(reference, {}), inputs).outputs[0])
    assert found.right and not found.precision, found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(5, 2051), (13, 1024), (64, 64), (3, 97), (1, 700)])
def test_a_softmax_composed_of_rounded_steps_is_honest(seed, dtype, shape):
    # The row's sum is rounded once, which moves the whole row by up to half a round-off.
    def composed(x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)

    honest(lambda x: torch.softmax(x, -1), composed, torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype))


@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("shape", [(1, 4099), (13, 4099), (1, 100000)])
def test_a_mean_added_up_one_after_the_other_is_honest(mean, shape):
    import numpy as np

    def in_sequence(x):
        return torch.from_numpy(np.add.accumulate(x.numpy(), axis=-1)[..., -1] / np.float32(x.shape[-1]))

    honest(lambda x: x.mean(-1), in_sequence, torch.randn(shape, generator=torch.Generator().manual_seed(3)) + mean)


def test_an_element_far_off_is_wrong_and_no_lower_precision():
    x = torch.randn(64, 128, generator=torch.Generator().manual_seed(1))
    y = torch.relu(x) + 1
    y[5, 7] += 0.01
    found = compare(y, expect(Reference(lambda x: torch.relu(x) + 1, {}), (x,)).outputs[0])
    assert not found.right and found.index == (5, 7) and "1 of 8,192" in found.reason, found


def test_a_common_factor_is_told_from_rows_that_share_an_error():
    x = torch.randn(64, 256, generator=torch.Generator().manual_seed(2)).bfloat16()
    right = expect(Reference(lambda x: torch.softmax(x, -1), {}), (x,)).outputs[0]
    found = compare((torch.softmax(x.float(), -1) * 1.004).bfloat16(), right)
    assert not found.right and "systematic" in found.reason and found.ratios["slope"] > 1 > found.ratios["max"], found

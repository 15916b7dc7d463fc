"""Is an output right? The rule, element by element, and what to say when it is not.

With y the candidate's output, r the reference's, Y the truth in float64, s the root mean square of Y, u the unit round-off of the output's
dtype and E the errors of honest computation on these inputs (see `expected`):

- every element: ``|y - Y| <= 4 max|E| + 8 u max(|Y|, s)``;
- together: ``rms(y - Y) <= 2 rms(E) + (2 u + 4 v) s`` (for few elements nearer to the rule for one), where v is the unit round-off of
  the accumulation dtype: a chain of a few fast approximations (exp2, rsqrt, division) may cost each element an ulp or two in the same
  direction;
- no bias: the slope of the error over Y, and the mean error, stay under half of u beyond the reference's own and beyond chance. A factor
  of 1.004 under bfloat16 hides within every element's bound, but not here. A row's sum that is rounded once moves the whole row by up to
  half of u: so errors count as common to rows, and chance is that of rows, where they are;
- NaN and infinities exactly where the reference or the truth has them; shape, dtype and integers exactly.

An output that only passes with the u of a coarser type is *lower precision*, which is not wrong, but not the same either. Rounding
scatters over all elements, so an error that is one common factor or shift, or that a few elements have alone, is no rounding of any type,
and stays wrong. TF32 in a matrix product is the exception: operands that are cut off make every product a little smaller, so there a
share of up to one u by which all is too small is no bias.

The constants are calibrated on the honest and dishonest kernels of `bench.calibrate`; the table is ``calibration.json``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from workbench.judge.correctness.expected import CHUNK, ExpectedOutput
from workbench.judge.correctness.patterns import describe
from workbench.judge.correctness.randomness import Draws

ROUND_OFF = {
    torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8,
    torch.float8_e4m3fn: 2.0**-4, torch.float8_e5m2: 2.0**-3,
}  # fmt: skip
TF32 = 2.0**-10
"""Tensor cores cut float32 operands off after ten bits, they do not round: an H200 does, by ``mma`` and by ``wgmma``."""

COARSER = (("TF32", TF32), ("bf16", 2.0**-8))
"""What a candidate may have computed in. fp16 is within the round-off of TF32."""

MAX_FACTOR, MAX_ROUND_OFFS = 4.0, 8.0
RMS_FACTOR, RMS_ROUND_OFFS = 2.0, 2.0
CHAIN = 4.0
"""Round-offs of the accumulation dtype that a chain of fast approximations may cost every element."""
BIAS_ROUND_OFFS, BIAS_FACTOR = 0.5, 4.0
FEW_ROWS, ALIKE = 1.75, 4.0
"""Of the bound on bias: where there are few rows that could have different errors, and where all elements are alike and have one error."""
CHANCE, ROWS_CHANCE = 5.0, 3.0
"""Standard errors that are chance: of elements, and of the rows that share an error."""

_COMMON_SHARE = 0.9
_FEW, _FAR = 0.005, 16.0
"""Less than this share of the elements, further off than so many bounds, is a fault of its own and no coarser type."""
_BIAS_FROM = 256  # elements; with fewer, chance alone reaches the threshold
_GROUPED = 1 << 20
"""Elements that are looked at for errors that rows share."""


@dataclass(frozen=True)
class Comparison:
    """How one output compares. `precision` names the coarser type whose round-off it needs; `right` without one is exactly right.

    Where it is not right: `reason` in one line, and a witness: the worst element's index, what it is, should be, and may be off by.
    """

    right: bool
    precision: str = ""
    reason: str = ""
    matched: float = 1.0
    ratio: float = 0.0
    index: tuple[int, ...] = ()
    got: float | None = None
    expected: float | None = None
    bound: float | None = None
    pattern: str = ""
    ratios: Mapping[str, float] = field(default_factory=dict)
    """Each rule's figure over its bound at the output's own round-off: max, rms, slope, mean."""


def compare(output: torch.Tensor, expected: ExpectedOutput, *, allowed: float = 0.0) -> Comparison:
    """Compares an output of the expected shape and dtype.

    Args:
        allowed: unit round-off that the policy allows beyond the output's own, such as that of TF32.
    """
    output = output.to(expected.reference.device)
    if expected.reference.numel() == 0:
        return Comparison(True)
    if expected.draws is not None:
        return _by_distribution(output, expected, expected.draws)
    if expected.ties is not None:
        wrong, why = expected.ties.fault(output, expected.reference)
        return _exact(output, expected.reference, wrong, why)
    if not output.is_floating_point():
        return _exact(output, expected.reference, output != expected.reference, "values")
    own = ROUND_OFF.get(output.dtype, torch.finfo(output.dtype).eps / 2)
    levels = [("", max(own, allowed)), *((name, u) for name, u in COARSER if u > max(own, allowed))]
    found = [_Level(name, u, expected, output.dtype) for name, u in levels]
    _scan(output, expected, found)
    few = found[0].bad < _FEW * found[0].count and found[0].count >= 1024 and found[0].ratio > _FAR
    for level in found:
        if not level.fault and not (level.name and few):
            return Comparison(True, level.name, matched=found[0].matched, ratio=found[0].ratio, ratios=found[0].ratios)
    return _witness(output, expected, found[0])


def _by_distribution(output: torch.Tensor, expected: ExpectedOutput, draws: Draws) -> Comparison:
    fault, ratio = draws.fault(output)
    if fault is None:
        return Comparison(True, ratio=ratio)
    index = _unravel(fault.index, expected.reference.shape) if fault.index is not None else ()
    return Comparison(False, "", fault.reason, 0.0, ratio, index, fault.got, fault.expected, fault.bound, "distribution")


class _Level:
    """The rule at one round-off, and what a scan finds by it."""

    def __init__(self, name: str, u: float, expected: ExpectedOutput, dtype: torch.dtype) -> None:
        accumulate = 2.0**-53 if dtype is torch.float64 else 2.0**-24
        tiny = (
            torch.finfo(dtype).smallest_normal
            if dtype in (torch.float32, torch.bfloat16)
            else torch.finfo(dtype).smallest_normal * own_eps(dtype)
        )
        self.name, self.u, self.scale = name, u, expected.scale
        error = expected.error
        self.constant = MAX_FACTOR * error.max + 2 * error.noise + tiny
        one = 1 / math.sqrt(max(1, expected.truth.numel()))  # of one element the rms is the largest error
        factor, round_offs = RMS_FACTOR + (MAX_FACTOR - RMS_FACTOR) * one, RMS_ROUND_OFFS + (MAX_ROUND_OFFS - RMS_ROUND_OFFS) * one
        self.rms_bound = factor * error.rms + 2 * error.noise + (round_offs * u + CHAIN * accumulate) * expected.scale + tiny
        biased = BIAS_ROUND_OFFS * _bias_factor(expected) * u + CHAIN * accumulate
        self.slope_bound = biased + BIAS_FACTOR * abs(error.slope)
        self.mean_bound = biased * expected.scale + BIAS_FACTOR * abs(error.mean) + error.noise + tiny
        self.lean = u if expected.products and u == TF32 else 0.0
        self.ratio, self.bad, self.count, self.worst = 0.0, 0, 0, 0
        self.fault = ""
        self.ratios: dict[str, float] = {}

    def bound(self, exact: torch.Tensor) -> torch.Tensor:
        return self.constant + MAX_ROUND_OFFS * self.u * exact.abs().clamp_min(self.scale)

    @property
    def matched(self) -> float:
        return 1.0 - self.bad / max(1, self.count)


def _bias_factor(expected: ExpectedOutput) -> float:
    """How much more one common error may be: less can be learnt where elements, or rows, are few different ones."""
    truth = expected.truth
    sample = truth.reshape(-1)[:: max(1, truth.numel() >> 16)].double().abs()
    sample = sample[torch.isfinite(sample)]
    if sample.numel() and float(sample.max() - sample.min()) <= 0.01 * expected.scale:
        return ALIKE
    return FEW_ROWS if truth.dim() > 1 and truth.numel() // truth.shape[-1] < 8 else 1.0


def own_eps(dtype: torch.dtype) -> float:
    """Spacing of the numbers just above one."""
    return float(torch.finfo(dtype).eps)


def _scan(output: torch.Tensor, expected: ExpectedOutput, levels: list[_Level]) -> None:
    flat, wide, own = (tensor.contiguous().view(-1) for tensor in (output, expected.truth, expected.reference))
    sums = dict.fromkeys(("squares", "cross", "power", "truth", "total", "count"), 0.0)
    for start in range(0, flat.numel(), CHUNK):
        value, exact, narrow = (tensor[start : start + CHUNK] for tensor in (flat, wide, own))
        off, finite = _distance(value, exact, narrow)
        true = torch.where(finite, exact.double(), 0.0)
        for level in levels:
            ratio = off.abs() / level.bound(true)
            bad = ~(ratio <= 1)
            level.bad += int(bad.sum())
            level.count += ratio.numel()
            ratio = torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf)
            top = float(ratio.max())
            if top > level.ratio:
                level.ratio, level.worst = top, start + int(ratio.argmax())
        error = torch.where(finite, off, 0.0)
        sums["squares"] += float(error.square().sum())
        sums["cross"] += float((error * true).sum())
        sums["power"] += float(true.square().sum())
        sums["truth"] += float(true.sum())
        sums["total"] += float(error.sum())
        sums["count"] += float(finite.sum())
    shared = _shared(output, expected) if sums["count"] >= _BIAS_FROM and sums["squares"] > 0 else (0.0, 0.0)
    for level in levels:
        level.fault = _judge_sums(level, sums, shared)


def _distance(value: torch.Tensor, exact: torch.Tensor, narrow: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Signed error of each element, infinite where a NaN or an infinity is out of place; and where both sides are finite."""
    y, true, own = value.double(), exact.double(), narrow.double()
    finite = torch.isfinite(y) & torch.isfinite(true)
    off = y - true
    # Equal infinities are no error, and neither are NaNs where NaN belongs. Where reference and truth differ, either will do.
    as_reference = (y == own) | (torch.isnan(y) & torch.isnan(own))
    as_truth = (y == true.to(value.dtype).double()) | (torch.isnan(y) & torch.isnan(true))
    off = torch.where(finite, off, torch.where(as_reference | as_truth, 0.0, math.inf))
    return off, finite


def _shared(output: torch.Tensor, expected: ExpectedOutput) -> tuple[float, float]:
    """Standard errors of slope and mean, taken as if what lies at one index of a dimension (or in one row) had one error in common."""
    shape = [size for size in output.shape if size > 1]
    if len(shape) < 2:
        return 0.0, 0.0
    step = max(1, -(-output.numel() // _GROUPED))
    rows = [tensor.reshape(-1, shape[-1])[::step] for tensor in (output, expected.truth, expected.reference)]
    off, finite = _distance(*rows)
    off = torch.where(finite, off, 0.0)
    true = torch.where(finite, rows[1].double(), 0.0)
    groups: list[tuple[int, ...]] = [(1,), (0,)]
    if step == 1 and len(shape) > 2:
        off, true = off.reshape(shape), true.reshape(shape)
        groups = [(len(shape) - 1,), *(tuple(d for d in range(len(shape)) if d != kept) for kept in range(len(shape)))]
    power, count = float(true.square().sum()), off.numel()
    if not power:
        return 0.0, 0.0
    slope, mean = float((off * true).sum()) / power, float(off.sum()) / count
    slopes = [((off * true).sum(dims) - slope * true.square().sum(dims)).square().sum().sqrt() / power for dims in groups]
    means = [(off - mean).sum(dims).square().sum().sqrt() / count for dims in groups]
    return float(max(slopes)), float(max(means))


def _judge_sums(level: _Level, sums: dict[str, float], shared: tuple[float, float]) -> str:
    count = max(1.0, sums["count"])
    if level.lean and sums["power"] > 0:
        sums = _without_lean(sums, level.lean)
    rms = math.sqrt(sums["squares"] / count)
    level.ratios = {"max": level.ratio, "rms": rms / level.rms_bound if level.rms_bound else 0.0}
    biased = ""
    if count >= _BIAS_FROM and sums["power"] > 0:
        # Chance: the standard error of slope and mean, for independent errors of this size and for those that rows share.
        slope_chance = CHANCE * rms / math.sqrt(sums["power"]) + ROWS_CHANCE * shared[0]
        mean_chance = CHANCE * rms / math.sqrt(count) + ROWS_CHANCE * shared[1]
        level.ratios["slope"] = abs(sums["cross"] / sums["power"]) / (level.slope_bound + slope_chance)
        level.ratios["mean"] = abs(sums["total"] / count) / (level.mean_bound + mean_chance)
        biased = "slope" if level.ratios["slope"] > 1 else "mean" if level.ratios["mean"] > 1 else ""
        common = max(sums["cross"] ** 2 / sums["power"], sums["total"] ** 2 / count)
        if not biased and level.name and common > _COMMON_SHARE * sums["squares"]:
            biased = "common"
    if level.bad:
        return "elements"
    level.ratio = max(level.ratio, level.ratios["rms"])
    return "rms" if level.ratios["rms"] > 1 else biased


def _without_lean(sums: dict[str, float], most: float) -> dict[str, float]:
    """The sums of what is left of the errors without the share, up to `most`, by which all elements are too small."""
    share = min(max(-sums["cross"] / sums["power"], 0.0), most)
    squares = sums["squares"] + 2 * share * sums["cross"] + share * share * sums["power"]
    return sums | {
        "squares": max(0.0, squares), "cross": sums["cross"] + share * sums["power"], "total": sums["total"] + share * sums["truth"],
    }  # fmt: skip


def _witness(output: torch.Tensor, expected: ExpectedOutput, level: _Level) -> Comparison:
    index = _unravel(level.worst, expected.reference.shape)
    got, true = float(output[index]), float(expected.truth[index])
    bound = float(level.bound(expected.truth[index].double().reshape(1))[0])
    wrong = torch.zeros(0, dtype=torch.bool)
    if level.fault == "elements":
        wrong = _wrong_mask(output, expected, level)
    pattern = describe(output, expected.truth, wrong)
    if level.fault == "elements":
        reason = f"{level.bad:,} of {level.count:,} elements are out of bounds; worst: {got:.7g} where {true:.7g} is right"
    elif level.fault == "rms":
        reason = f"each element is within its bound, but all together are {level.ratio:.2f} times too far off"
    else:
        reason = f"a systematic error: {pattern or 'all elements lean to one side'}"
    return Comparison(
        False, "", reason, level.matched, max(level.ratio, 1.0 + 1e-9), index, got, true, bound, pattern, level.ratios
    )  # fmt: skip


def _wrong_mask(output: torch.Tensor, expected: ExpectedOutput, level: _Level) -> torch.Tensor:
    mask = torch.zeros(output.numel(), dtype=torch.bool, device=output.device)
    flat, wide, own = (tensor.contiguous().view(-1) for tensor in (output, expected.truth, expected.reference))
    for start in range(0, flat.numel(), CHUNK):
        part = slice(start, start + CHUNK)
        off, finite = _distance(flat[part], wide[part], own[part])
        mask[part] = ~(off.abs() <= level.bound(torch.where(finite, wide[part].double(), 0.0)))
    return mask.view(output.shape)


def _exact(output: torch.Tensor, reference: torch.Tensor, wrong: torch.Tensor, what: str) -> Comparison:
    bad = int(wrong.sum())
    if not bad:
        return Comparison(True)
    index = _unravel(int(wrong.reshape(-1).int().argmax()), output.shape)
    matched = 1 - bad / wrong.numel()
    reason = f"{bad:,} of {wrong.numel():,} {what} differ; first: {_number(output[index])} where {_number(reference[index])} is right"
    return Comparison(
        False, "", reason, matched, math.inf, index, float(output[index]), float(reference[index]), 0.0,
        describe(output.double(), reference.double(), wrong),
    )  # fmt: skip


def _unravel(position: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(position % size)
        position //= size
    return tuple(reversed(index))


def _number(value: Any) -> str:
    return str(value.item())

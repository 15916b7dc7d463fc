"""Is an output right? The rule, element by element, and what to say when it is not.

With y the candidate's output, r the reference's, Y the truth in float64, s the root mean square of Y, u the unit round-off of the output's
dtype and E the errors of honest computation on these inputs (see `expected`):

- every element: ``|y - Y| <= 4 max|E| + 8 u max(|Y|, s)``;
- together: ``rms(y - Y) <= 2 rms(E) + (2 u + 4 v) s``, where v is the unit round-off of the accumulation dtype: a chain of a few fast
  approximations (exp2, rsqrt, division) may cost each element an ulp or two in the same direction;
- no bias: the slope of the error over Y, and the mean error, stay under a quarter of u beyond the reference's own and beyond chance. A
  factor of 1.004 under bfloat16 hides within every element's bound, but not here;
- NaN and infinities exactly where the reference or the truth has them; shape, dtype and integers exactly.

An output that only passes with the u of a coarser type is *lower precision*, which is not wrong, but not the same either. Rounding
scatters, so an error that is one common factor or shift is no rounding of any type, and stays wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from workbench.judge.expected import CHUNK, ExpectedOutput
from workbench.judge.patterns import describe

ROUND_OFF = {
    torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8,
    torch.float8_e4m3fn: 2.0**-4, torch.float8_e5m2: 2.0**-3,
}  # fmt: skip
COARSER = (("TF32", 2.0**-11), ("bf16", 2.0**-8))
"""What a candidate may have computed in. fp16 has the round-off of TF32."""

MAX_FACTOR, RMS_FACTOR = 4.0, 2.0
_COMMON_SHARE = 0.9
_BIAS_FROM = 256  # elements; with fewer, chance alone reaches the threshold


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


def compare(output: torch.Tensor, expected: ExpectedOutput, *, allowed: float = 0.0) -> Comparison:
    """Compares an output of the expected shape and dtype.

    Args:
        allowed: unit round-off that the policy allows beyond the output's own, such as that of TF32.
    """
    output = output.to(expected.reference.device)
    if expected.reference.numel() == 0:
        return Comparison(True)
    if expected.ties is not None:
        wrong, why = expected.ties.fault(output, expected.reference)
        return _exact(output, expected.reference, wrong, why)
    if not output.is_floating_point():
        return _exact(output, expected.reference, output != expected.reference, "values")
    own = ROUND_OFF.get(output.dtype, torch.finfo(output.dtype).eps / 2)
    levels = [("", max(own, allowed)), *((name, u) for name, u in COARSER if u > max(own, allowed))]
    found = [_Level(name, u, expected, output.dtype) for name, u in levels]
    _scan(output, expected, found)
    for level in found:
        if not level.fault:
            return Comparison(True, level.name, matched=found[0].matched, ratio=found[0].ratio)
    return _witness(output, expected, found[0])


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
        self.constant = MAX_FACTOR * expected.error.max + tiny
        self.rms_bound = RMS_FACTOR * expected.error.rms + (2 * u + 4 * accumulate) * expected.scale + tiny
        self.slope_bound = 0.25 * u + 4 * accumulate + 4 * abs(expected.error.slope)
        self.mean_bound = (0.25 * u + 4 * accumulate) * expected.scale + 4 * abs(expected.error.mean) + tiny
        self.ratio, self.bad, self.count, self.worst = 0.0, 0, 0, 0
        self.fault = ""

    def bound(self, exact: torch.Tensor) -> torch.Tensor:
        return self.constant + 8 * self.u * exact.abs().clamp_min(self.scale)

    @property
    def matched(self) -> float:
        return 1.0 - self.bad / max(1, self.count)


def own_eps(dtype: torch.dtype) -> float:
    """Spacing of the numbers just above one."""
    return float(torch.finfo(dtype).eps)


def _scan(output: torch.Tensor, expected: ExpectedOutput, levels: list[_Level]) -> None:
    flat, wide, own = (tensor.contiguous().view(-1) for tensor in (output, expected.truth, expected.reference))
    sums = dict.fromkeys(("squares", "cross", "power", "fourth", "total", "count"), 0.0)
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
        sums["fourth"] += float(true.square().square().sum())
        sums["total"] += float(error.sum())
        sums["count"] += float(finite.sum())
    for level in levels:
        level.fault = _judge_sums(level, sums)


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


def _judge_sums(level: _Level, sums: dict[str, float]) -> str:
    count = max(1.0, sums["count"])
    if level.bad:
        return "elements"
    rms = math.sqrt(sums["squares"] / count)
    level.ratio = max(level.ratio, rms / level.rms_bound if level.rms_bound else 0.0)
    if rms > level.rms_bound:
        return "rms"
    if count >= _BIAS_FROM and sums["power"] > 0:
        # Chance: the standard error of slope and mean for independent errors of this size, six times.
        slope_chance = 6 * rms / math.sqrt(sums["power"])
        mean_chance = 6 * rms / math.sqrt(count)
        if abs(sums["cross"] / sums["power"]) > level.slope_bound + slope_chance:
            return "slope"
        if abs(sums["total"] / count) > level.mean_bound + mean_chance:
            return "mean"
        common = max(sums["cross"] ** 2 / sums["power"], sums["total"] ** 2 / count)
        if level.name and common > _COMMON_SHARE * sums["squares"]:
            return "common"
    return ""


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
    return Comparison(False, "", reason, level.matched, max(level.ratio, 1.0 + 1e-9), index, got, true, bound, pattern)


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

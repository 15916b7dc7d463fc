"""Whether results were rounded to fewer bits than their dtype has, where their bounds are too wide to tell.

A single element in half precision may be off by eight round-offs. A loss that was rounded to eight bits on its way is within that every
second time, and within it on all input sets of a judging often enough. But it then has few bits, every time: its mantissa ends in zeros
where the reference's and the truth's do not. By chance a result of `bits` trailing zeros stands beside such a truth once in
``2**bits - 1`` times, however large its error is; and never where it is the truth, rounded. So only elements of which the reference and
the rounded truth both have more bits are counted, one for each different truth: zeros, whole numbers, powers of two, and what is the same
on all inputs say nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from workbench.judge.correctness.compare import ROUND_OFF
from workbench.judge.correctness.expected import ExpectedOutput

CHANCE = 2.5e-7
"""Below it, chance is no explanation. Four numbers of trailing zeros are tried, so an honest kernel's is less than 1e-6 in all."""

_MANTISSA = {torch.bfloat16: 7, torch.float16: 10}
_FEWEST_ZEROS, _MOST_ZEROS = 3, 6
_SUSPICIOUS = 3
"""Different truths at which it is worth asking for more: one honest kernel in three hundred comes so far."""

_SAMPLE = 4096
_ENOUGH = 64


@dataclass
class Grid:
    """What is known of one output over the calls of a judging. `allowed` is the round-off that the policy grants."""

    allowed: float = 0.0
    _seen: dict[int, set[int]] | None = field(default=None, init=False, repr=False)
    """Different truths by the number of trailing zeros that all results had so far."""

    def add(self, output: torch.Tensor, expected: ExpectedOutput) -> None:
        """Takes one more result into account. One that has all its bits ends the question, so that an honest kernel's later calls cost
        nothing.
        """
        reference = expected.reference
        mantissa = _MANTISSA.get(reference.dtype)
        if mantissa is None or expected.draws is not None or reference.numel() == 0 or self._seen == {}:
            return
        if self._seen is None:
            coarse = (bits for bits in range(_FEWEST_ZEROS, _MOST_ZEROS + 1) if 2.0**bits * ROUND_OFF[reference.dtype] > self.allowed)
            self._seen = {bits: set() for bits in coarse}
        got, own, exact = (_patterns(tensor, reference.dtype) for tensor in (output.to(reference.device), reference, expected.truth))
        usable = _normal(got, mantissa) & _normal(own, mantissa) & _normal(exact, mantissa)
        for bits in sorted(self._seen):
            tail = (1 << bits) - 1
            counted = usable & ((own & tail) != 0) & ((exact & tail) != 0)
            if bool((counted & ((got & tail) != 0)).any()):
                for more in [other for other in self._seen if other >= bits]:  # who has fewer zeros than these has not more either
                    del self._seen[more]
                return
            if len(self._seen[bits]) < _ENOUGH:
                self._seen[bits] |= set(exact[counted][:_SAMPLE].unique()[:_ENOUGH].tolist())

    @property
    def suspicious(self) -> bool:
        """Whether all results had few bits so far, and there were not enough of them."""
        seen = self._seen or {}
        return max(map(len, seen.values()), default=0) >= _SUSPICIOUS and not any(_is_enough(*item) for item in seen.items())

    def kept_bits(self, dtype: torch.dtype) -> int | None:
        """How many bits behind the binary point the results have at most, if it is fewer than the dtype's own; else None."""
        for bits, truths in sorted((self._seen or {}).items()):
            if _is_enough(bits, truths):
                return _MANTISSA[dtype] - bits
        return None


def _is_enough(bits: int, truths: set[int]) -> bool:
    return -len(truths) * math.log(2.0**bits - 1) < math.log(CHANCE)


def _patterns(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The bit patterns of elements spread over a tensor."""
    flat = tensor.reshape(-1)
    return flat[:: max(1, -(-flat.numel() // _SAMPLE))].to(dtype).view(torch.int16)


def _normal(patterns: torch.Tensor, mantissa: int) -> torch.Tensor:
    """Which are neither zero nor tiny, infinite or no number."""
    exponent = (patterns & 0x7FFF) >> mantissa
    return (exponent > 0) & (exponent < (0x7FFF >> mantissa))

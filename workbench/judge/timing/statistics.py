"""From the times of single calls to a time with an interval, and from two of those to a speedup."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.candidate import Speedup, Timing

_RESAMPLES = 1000
FASTER = 1.02
"""A candidate is called faster only where even the low end of its interval is above this."""

BIMODAL = 1.3
Blocks = Sequence[Sequence[float]]
"""µs per call, in blocks as they were measured."""


def timing(blocks: Blocks) -> Timing:
    """Median of all calls with its 95 % interval, and the 10th and 90th percentile."""
    calls = np.concatenate([np.asarray(block, dtype=float) for block in blocks])
    low, high = np.percentile(_medians(blocks, np.random.default_rng(0)), [2.5, 97.5])
    p10, p90 = np.percentile(calls, [10, 90])
    return Timing(float(np.median(calls)), float(low), float(high), float(p10), float(p90), calls=len(calls), blocks=len(blocks))


def speedup(baseline: Blocks, candidate: Blocks, against: str, *, paired: bool = False) -> Speedup:
    """Baseline over candidate, with its 95 % interval.

    Args:
        paired: the blocks were measured in turns, so that each pair saw the same clocks; then pairs are drawn, not single blocks.
    """
    ratio = float(
        np.median(np.concatenate([np.asarray(b) for b in baseline])) / np.median(np.concatenate([np.asarray(b) for b in candidate]))
    )
    if paired and len(baseline) == len(candidate):
        medians = np.array([np.median(b) / np.median(c) for b, c in zip(baseline, candidate, strict=True)])
        picks = np.random.default_rng(0).integers(0, len(medians), (_RESAMPLES, len(medians)))
        samples = np.median(medians[picks], axis=1)
    else:
        samples = _medians(baseline, np.random.default_rng(0)) / _medians(candidate, np.random.default_rng(1))
    low, high = np.percentile(samples, [2.5, 97.5])
    return Speedup(ratio, float(min(low, ratio)), float(max(high, ratio)), against)


def _medians(blocks: Blocks, generator: np.random.Generator) -> np.ndarray:
    """Medians of resampled measurements: blocks are drawn first, then calls within them, since calls of one block are alike."""
    arrays = [np.asarray(block, dtype=float) for block in blocks]
    longest = max(len(block) for block in arrays)
    # Short blocks are padded with NaN, so that all resamples are drawn and reduced at once.
    table = np.full((len(arrays), longest), np.nan)
    for row, block in enumerate(arrays):
        table[row, : len(block)] = block
    lengths = np.array([len(block) for block in arrays])
    chosen = generator.integers(0, len(arrays), (_RESAMPLES, len(arrays)))
    places = (generator.random((_RESAMPLES, len(arrays), longest)) * lengths[chosen][..., None]).astype(int)
    drawn = np.where(np.arange(longest) < lengths[chosen][..., None], table[chosen[..., None], places], np.nan)
    flat = drawn.reshape(_RESAMPLES, -1)
    return np.nanmedian(flat, axis=1) if np.isnan(flat).any() else np.median(flat, axis=1)


def bimodal(timing: Timing) -> bool:
    """Whether the slow calls are of another kind than the fast ones, so that a median says little."""
    return bool(timing.p10_us) and timing.p90_us / timing.p10_us > BIMODAL


def faster(speedup: Speedup | None) -> bool:
    """Whether the candidate may be called faster than the baseline."""
    return speedup is not None and speedup.low > FASTER


def noise(blocks: Blocks) -> float:
    """How far the medians of the odd and of the even blocks of one and the same kernel are apart, as a share."""
    medians = [float(np.median(block)) for block in blocks]
    if len(medians) < 2 or min(medians) <= 0:
        return 0.0
    odd, even = float(np.median(medians[1::2])), float(np.median(medians[::2]))
    return max(odd, even) / min(odd, even) - 1.0

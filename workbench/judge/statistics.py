"""From the times of single calls to a time with an interval, and from two of those to a speedup."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.candidate import Speedup, Timing

_RESAMPLES = 1000
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
    out = np.empty(_RESAMPLES)
    for sample in range(_RESAMPLES):
        chosen = [arrays[k] for k in generator.integers(0, len(arrays), len(arrays))]
        out[sample] = np.median(np.concatenate([block[generator.integers(0, len(block), len(block))] for block in chosen]))
    return out

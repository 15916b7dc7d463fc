"""Sets of 32-byte sectors of device memory, as sorted intervals, and how many a whole grid touches when only some programs were seen."""

from __future__ import annotations

import numpy as np

SECTOR = 32
"""Bytes that DRAM and L2 move at least."""

Intervals = tuple[np.ndarray, np.ndarray]
"""First sectors and the sectors after the last, both sorted, disjoint."""

EMPTY: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def of_pointers(pointers: np.ndarray, mask: np.ndarray | None) -> Intervals:
    """The sectors that some addresses lie in. Tiles with contiguous rows take a pass over them, anything else a sort."""
    chosen = np.broadcast_to(pointers, np.broadcast_shapes(pointers.shape, mask.shape))[mask] if mask is not None else pointers.ravel()
    if chosen.size == 0:
        return EMPTY
    sectors = (chosen >> np.uint64(5)).astype(np.int64)
    steps = np.diff(sectors)
    breaks = np.flatnonzero((steps != 0) & (steps != 1))
    if len(breaks) > len(sectors) // 4:
        sectors = np.unique(sectors)
        breaks = np.flatnonzero(np.diff(sectors) != 1)
    starts = sectors[np.concatenate(([0], breaks + 1))]
    ends = sectors[np.concatenate((breaks, [len(sectors) - 1]))] + 1
    return (starts, ends) if len(starts) == 1 else merge([(starts, ends)])


def merge(parts: list[Intervals]) -> Intervals:
    """The union."""
    if not parts:
        return EMPTY
    starts = np.concatenate([part[0] for part in parts])
    ends = np.concatenate([part[1] for part in parts])
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    if len(starts) == 0:
        return EMPTY
    new = np.concatenate(([True], starts[1:] > ends[:-1]))
    last = np.concatenate((new[1:], [True]))
    return starts[new], ends[last]


def size(intervals: Intervals) -> int:
    """Number of sectors."""
    return int((intervals[1] - intervals[0]).sum())


def overlap(one: Intervals, other: Intervals) -> int:
    """Number of sectors in both."""
    return size(one) + size(other) - size(merge([one, other]))


def estimate_union(sampled: list[Intervals], neighbours: list[tuple[Intervals, Intervals]], programs: int, limit: int) -> float:
    """Sectors that all programs touch together.

    Args:
        sampled: of each program that was seen, spread over the grid.
        neighbours: pairs of programs next to each other.
        programs: of the whole grid.
        limit: sectors of the whole tensor.

    Between "all alike" and "all apart" the sample alone can't tell, so three things are used: what was seen is a lower bound, the tensor's
    size an upper one, and a tensor that the grid reads often enough to cover it counts as covered, unless the programs that were seen
    keep to one small part of it.
    """
    sizes = np.array([size(part) for part in sampled], float)
    seen = size(merge(sampled))
    if len(sampled) >= programs or seen == 0:
        return float(seen)
    mean = float(sizes.mean())
    together = mean * programs
    shares = [overlap(a, b) / max(size(a), 1) for a, b in neighbours if size(a)]
    share = float(np.mean(shares)) if shares else 0.0
    if 0.02 < share < 0.9 and float(np.std(shares)) < 0.2:
        # Windows that overlap their neighbours': each adds what the one before lacks.
        together *= 1.0 - share
    if seen < 0.5 * sizes.sum() and together > seen:
        covered = _saturation(len(sampled), mean, seen)
        if covered < 0.1 * limit or seen <= 1.05 * mean:
            return float(min(covered, together, limit))
    return float(min(max(together, seen), limit))


def _saturation(samples: int, mean: float, seen: float) -> float:
    """The population whose expected union of `samples` random parts of `mean` sectors is `seen`."""
    low, high = float(seen), float(seen) * 64
    for _ in range(60):
        middle = (low + high) / 2
        if middle * (1 - (1 - min(mean / middle, 1.0)) ** samples) < seen:
            low = middle
        else:
            high = middle
    return (low + high) / 2

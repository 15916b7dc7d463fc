"""From addresses to pictures: which elements of a tensor were touched how often, as a grid of cells that is small enough to send."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.explain.inspection import Runs

LANES = 32
SECTOR = 32
_DENSE = 1 << 22
_BUFFER = 1 << 20
_MOST_KEYS = 1 << 24


class Counts:
    """How often each element of a tensor was touched. Dense where the tensor is small, else only what was touched is kept.

    Args:
        elements: of the tensor's memory, from its first element on.
    """

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.full = False
        """Too many different elements were touched: what came after is not counted."""
        self._dense = np.zeros(elements, np.int64) if elements <= _DENSE else None
        self._keys, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._new: list[np.ndarray] = []
        self._waiting = 0

    def add(self, keys: np.ndarray) -> None:
        """Counts element numbers; the same one may come several times. Those outside the tensor are dropped."""
        keys = keys[(keys >= 0) & (keys < self.elements)]
        if self._dense is not None:
            np.add.at(self._dense, keys, 1)
            return
        if self.full:
            return
        self._new.append(keys)
        self._waiting += keys.size
        if self._waiting > _BUFFER:
            self._settle()

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """The element numbers that were touched, in rising order, and how often."""
        if self._dense is not None:
            keys = np.flatnonzero(self._dense)
            return keys, self._dense[keys]
        self._settle()
        return self._keys, self._counts

    def _settle(self) -> None:
        if self._new:
            keys, counts = np.unique(np.concatenate(self._new), return_counts=True)
            merged, where = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
            total = np.zeros(merged.size, np.int64)
            np.add.at(total, where, np.concatenate([self._counts, counts]))
            self._keys, self._counts = merged, total
            self._new, self._waiting = [], 0
            self.full = merged.size > _MOST_KEYS


@dataclass(frozen=True)
class Grid:
    """A tensor's last two logical dimensions in at most `most` by `most` cells; dimensions that are expanded count as one."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    most: int = 128
    rows: int = field(init=False)
    columns: int = field(init=False)
    row_elements: int = field(init=False)
    column_elements: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = [1 if stride == 0 else size for size, stride in zip(self.shape, self.strides, strict=True)] or [1]
        height, width = (sizes[-2] if len(sizes) > 1 else 1), sizes[-1]
        for name, size in (("row", height), ("column", width)):
            per_cell = max(1, -(-size // self.most))
            object.__setattr__(self, f"{name}_elements", per_cell)
            object.__setattr__(self, f"{name}s", max(1, -(-size // per_cell)))

    @property
    def folded(self) -> int:
        """Elements behind each place of the last two dimensions."""
        sizes = [1 if stride == 0 else size for size, stride in zip(self.shape, self.strides, strict=True)]
        return math.prod(sizes[:-2]) if len(sizes) > 2 else 1

    def cells(self, keys: np.ndarray) -> np.ndarray:
        """The cell of each element number; -1 for numbers that lie in gaps between the tensor's elements."""
        rest = keys.astype(np.int64)
        places = [np.zeros(keys.shape, np.int64) for _ in self.shape]
        inside = rest >= 0
        # From the largest stride down, each dimension takes its share of the distance.
        for dim in sorted(range(len(self.shape)), key=lambda dim: (-self.strides[dim], -self.shape[dim])):
            if self.strides[dim] <= 0 or self.shape[dim] <= 1:
                continue
            index = np.minimum(rest // self.strides[dim], self.shape[dim] - 1)
            places[dim] = index
            rest = rest - index * self.strides[dim]
        inside &= rest == 0
        column = places[-1] // self.column_elements if places else np.zeros(keys.shape, np.int64)
        row = places[-2] // self.row_elements if len(places) > 1 else np.zeros(keys.shape, np.int64)
        return np.where(inside, row * self.columns + column, -1)

    def sizes(self) -> np.ndarray:
        """How many elements each cell stands for."""
        sizes = [1 if stride == 0 else size for size, stride in zip(self.shape, self.strides, strict=True)] or [1]
        height, width = (sizes[-2] if len(sizes) > 1 else 1), sizes[-1]
        rows = np.minimum(self.row_elements, height - np.arange(self.rows) * self.row_elements)
        columns = np.minimum(self.column_elements, width - np.arange(self.columns) * self.column_elements)
        return np.outer(rows, columns).ravel() * self.folded

    def means(self, keys: np.ndarray, counts: np.ndarray) -> Runs:
        """The mean count of each cell's elements, run-length coded."""
        cells = self.cells(keys)
        total = np.bincount(cells[cells >= 0], weights=counts[cells >= 0], minlength=self.rows * self.columns)
        return runs(np.round(total / np.maximum(self.sizes(), 1), 2))

    def ranges(self, keys: np.ndarray) -> tuple[tuple[int, int], ...]:
        """Half-open ranges of the cells in which these elements lie."""
        cells = np.unique(self.cells(keys))
        cells = cells[cells >= 0]
        if cells.size == 0:
            return ()
        breaks = np.flatnonzero(np.diff(cells) != 1)
        starts = cells[np.concatenate(([0], breaks + 1))]
        ends = cells[np.concatenate((breaks, [cells.size - 1]))] + 1
        return tuple((int(start), int(end)) for start, end in zip(starts, ends, strict=True))


def runs(values: np.ndarray) -> Runs:
    """Run-length code of a row of numbers."""
    if values.size == 0:
        return ()
    starts = np.concatenate(([0], np.flatnonzero(np.diff(values)) + 1, [values.size]))
    return tuple((float(values[start]), int(end - start)) for start, end in itertools.pairwise(starts))


@dataclass(frozen=True)
class Requests:
    """What the lanes of one access ask of memory: requests of 32 lanes, the sectors they move, and those that would do."""

    requests: int
    sectors: int
    ideal: int
    lanes: int
    active: int


def coalesce(pointers: np.ndarray, mask: np.ndarray | None, itemsize: int) -> Requests:
    """Deals a block's elements to lanes as the compiler does, neighbours in memory to neighbouring lanes, and counts the sectors.

    Args:
        pointers: addresses, any shape.
        mask: which are used; None for all.
        itemsize: bytes at each.
    """
    shape = np.broadcast_shapes(pointers.shape, mask.shape) if mask is not None else pointers.shape
    block = np.broadcast_to(pointers, shape)
    flags = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape)
    order = _order(block)
    lanes = block.size
    padding = -lanes % LANES
    flat: np.ndarray = np.concatenate([block.transpose(order).ravel(), np.zeros(padding, block.dtype)]).reshape(-1, LANES)
    used: np.ndarray = np.concatenate([flags.transpose(order).ravel(), np.zeros(padding, bool)]).reshape(-1, LANES)
    some = used.any(1)
    flat, used = flat[some], used[some]
    if not len(flat):
        return Requests(0, 0, 0, lanes, 0)
    # A lane that is off asks for what another one asks for: nothing more.
    first = flat[np.arange(len(flat)), used.argmax(1)]
    flat = np.sort(np.where(used, flat, first[:, None]), axis=1)
    new = np.diff(flat, axis=1) != 0
    distinct = 1 + new.sum(1)
    sectors = flat >> np.uint64(5)
    moved = 1 + (np.diff(sectors, axis=1) != 0).sum(1)
    ideal = -(-distinct * itemsize // SECTOR)
    return Requests(len(flat), int(moved.sum()), int(ideal.sum()), lanes, int(used.sum()))


def _order(block: np.ndarray) -> Sequence[int]:
    """The axes, slowest first, so that the last is the one along which addresses are closest."""
    steps = []
    for axis, size in enumerate(block.shape):
        if size < 2:
            steps.append((2, 0, -axis))
            continue
        pair = block.take([0, 1], axis=axis).astype(np.int64).reshape(-1)
        step = abs(int(np.diff(block.take([0, 1], axis=axis).astype(np.int64), axis=axis).ravel()[0])) if pair.size else 0
        steps.append((1, step, -axis) if step == 0 else (0, step, -axis))
    # Contiguous axes last; those along which nothing moves before them.
    return sorted(range(block.ndim), key=lambda axis: steps[axis], reverse=True)

"""What the launches of the real shapes write, without running them all: in the interpreter, on sampled programs.

A kernel that is right on small shapes may be wrong at the real one alone: a grid with a constant in it, a tail that only shows there, an
index that overflows. So a few programs of each launch are run at the real shape, the first, the last, those at the edges and random ones:

- what they store is handed to the judge, which knows what belongs there;
- where they store is fitted: if the first element of each program is linear in its place in the grid, and inner programs all store the
  same pattern, then what the whole grid stores is known, and an element that nobody writes can be named.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from workbench.judge.emulation import interpreter
from workbench.judge.emulation._mended import Now, Watch
from workbench.judge.emulation.interpreter import Launch

SAMPLED = 20
PATIENCE = 8.0
"""Seconds for all programs; those left out are not sampled."""
_MOST_PATTERN, _MOST_MARKED = 1 << 16, 1 << 27
VALUES = 2048
"""Stored elements that are handed over for each output."""


@dataclass
class _Seen:
    """One launch: what each sampled program stored, as addresses."""

    launch: Launch
    stores: dict[tuple[int, int, int], np.ndarray] = field(default_factory=dict)


class _Stores(Watch):
    def __init__(self, skips_memory: bool) -> None:
        self.skips_memory = skips_memory
        self.addresses: list[np.ndarray] = []

    def accessed(self, verb: str, pointers: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: int | None) -> None:
        if verb != "reads":
            self.addresses.append(pointers.reshape(-1) if mask is None else pointers[np.broadcast_to(mask, pointers.shape)])


def measure(call: Callable[..., list[torch.Tensor]], inputs: Sequence[Any], *, real: bool, seed: int = 0) -> dict[str, Any]:
    """Runs a launcher with its launches sampled.

    Args:
        call: gives a flat list of outputs.
        real: the inputs have content, and what the programs store is worth looking at. Only the first launch's is: a later one may read
            what the programs that were left out would have written.

    Returns:
        ``{"outputs": [{"shown", "missing", "places", "values"}, …], "launches": n}``: whether the whole grid's stores are known, the first
        element that nobody writes (-1 where there is none), and places in the flat output with what was stored there.
    """
    seen: list[_Seen] = []
    rng, until = random.Random(seed), time.perf_counter() + PATIENCE

    def launched(launch: Launch) -> None:
        found = _Seen(launch)
        seen.append(found)
        for place in _chosen(launch.grid, rng):
            if time.perf_counter() > until:
                break
            watch = _Stores(skips_memory=not real or len(seen) > 1)
            before, Now.watch = Now.watch, watch
            try:
                launch.run_program(place)
            finally:
                Now.watch = before
            found.stores[place] = np.unique(np.concatenate(watch.addresses)) if watch.addresses else np.empty(0, np.uint64)

    interpreter.set_observer(launched)
    try:
        outputs = call(*inputs)
    finally:
        interpreter.set_observer(None)
    return {"outputs": [_of_output(output, seen, rng, real) for output in outputs], "launches": len(seen)}


def _of_output(output: torch.Tensor, seen: Sequence[_Seen], rng: random.Random, real: bool) -> dict[str, Any]:
    start, item, count = output.data_ptr(), output.element_size(), output.numel()
    nothing: dict[str, Any] = {"shown": False, "missing": -1, "places": [], "values": []}
    if not output.is_contiguous() or count == 0 or count > _MOST_MARKED:
        return nothing
    written = np.zeros(count, bool)
    shown = bool(seen)
    for number, found in enumerate(seen):
        places = {place: _places(addresses, start, item, count) for place, addresses in found.stores.items()}
        places = {place: inside for place, inside in places.items() if inside.size}
        if not places:
            continue
        if number == 0 and real and len(seen) == 1:
            nothing |= _values(output, places, rng)
        shown = shown and _mark(written, places, found.launch.grid)
    if not written.any():
        return nothing
    missing = int(np.argmin(written)) if shown and not written.all() else -1
    return nothing | {"shown": shown, "missing": missing}


def _places(addresses: np.ndarray, start: int, item: int, count: int) -> np.ndarray:
    inside = addresses[(addresses >= np.uint64(start)) & (addresses < np.uint64(start + count * item))]
    return ((inside - np.uint64(start)) // np.uint64(item)).astype(np.int64)


def _values(output: torch.Tensor, places: dict[tuple[int, int, int], np.ndarray], rng: random.Random) -> dict[str, Any]:
    each = max(1, VALUES // len(places))
    chosen: list[int] = []
    for found in places.values():
        picked = {0, found.size - 1, *(rng.randrange(found.size) for _ in range(each))}
        chosen += [int(found[position]) for position in picked]
    flat = output.detach().reshape(-1)[torch.tensor(chosen)]
    return {"places": chosen, "values": [float(value) for value in flat.double()]}


def _mark(written: np.ndarray, places: dict[tuple[int, int, int], np.ndarray], grid: tuple[int, int, int]) -> bool:
    """Marks what all programs store, if that can be told from those that were seen."""
    axes = [axis for axis in range(3) if grid[axis] > 1]
    firsts = {place: int(found[0]) for place, found in places.items()}
    # Programs at an edge may store less: the pattern is that of those that store most.
    most = max(found.size for found in places.values())
    inner = [place for place, found in places.items() if found.size == most]
    pattern = places[inner[0]] - firsts[inner[0]]
    if most > _MOST_PATTERN or any(not np.array_equal(places[place] - firsts[place], pattern) for place in inner):
        return False
    rows = np.array([[1.0, *(place[axis] for axis in axes)] for place in firsts])
    if np.linalg.matrix_rank(rows) < len(axes) + 1:
        return False
    fitted, *_ = np.linalg.lstsq(rows, np.array([float(first) for first in firsts.values()]), rcond=None)
    steps = [round(value) for value in fitted]
    if any(
        steps[0] + sum(step * place[axis] for step, axis in zip(steps[1:], axes, strict=True)) != first for place, first in firsts.items()
    ):
        return False
    base = np.array([steps[0]], dtype=np.int64)
    for step, axis in zip(steps[1:], axes, strict=True):
        base = (base[:, None] + step * np.arange(grid[axis], dtype=np.int64)[None]).reshape(-1)
    if base.size * pattern.size > 4 * _MOST_MARKED:
        return False
    chunk = max(1, (1 << 22) // pattern.size)
    for at in range(0, base.size, chunk):
        marked = (base[at : at + chunk, None] + pattern[None]).reshape(-1)
        # A pattern that hangs over an edge marks what follows too: too much, never too little.
        written[marked[(marked >= 0) & (marked < written.size)]] = True
    return True


def _chosen(grid: tuple[int, int, int], rng: random.Random) -> list[tuple[int, int, int]]:
    """The corners, their neighbours along each axis, and random places; those worth most first."""
    if 0 in grid:
        return []
    ends = [tuple(dict.fromkeys((0, size - 1))) for size in grid]
    chosen: dict[tuple[int, int, int], None] = {(0, 0, 0): None, (grid[0] - 1, grid[1] - 1, grid[2] - 1): None}
    for axis in range(3):
        for step in (1, grid[axis] - 2):
            if 0 < step < grid[axis]:
                place = [0, 0, 0]
                place[axis] = step
                chosen[place[0], place[1], place[2]] = None
    chosen |= dict.fromkeys((x, y, z) for x, y, z in itertools.product(*ends))
    for _ in range(4 * SAMPLED):
        if len(chosen) >= SAMPLED:
            break
        chosen[rng.randrange(grid[0]), rng.randrange(grid[1]), rng.randrange(grid[2])] = None
    return list(chosen)[:SAMPLED]

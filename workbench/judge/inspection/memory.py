"""Which program touches which addresses, watched in the interpreter's worker, for the Memory tab."""

from __future__ import annotations

import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.explain.inspection import AccessRow, Footprint, LaunchMemory, MemoryReport, ProgramMap, TensorMap
from workbench.explain.memory_map import Counts, Grid, Requests, coalesce
from workbench.judge.emulation import interpreter
from workbench.judge.emulation._mended import Now, Watch
from workbench.judge.emulation.interpreter import Launch
from workbench.judge.emulation.memory import Region
from workbench.judge.recording.launches import launch_key
from workbench.judge.recording.traffic import choose_programs
from workbench.judge.recording.untouched import Untouched
from workbench.records import dumps

SAMPLED = 16
"""Programs whose own footprint is kept."""

LARGEST = 300_000
"""Characters of the report as JSON."""

PROGRAMS, SECONDS = 4096, 20.0
"""Programs of one launch to interpret at most, and seconds of all of them."""

LAUNCHES = 8
_OPS = {"reads": "load", "writes": "store", "adds to": "atomic", "swaps": "atomic"}


def watched(
    function: Callable[..., Any], inputs: Sequence[Any], path: Path, *, shapes: str, shown: Sequence[str]
) -> MemoryReport:  # fmt: skip
    """Runs the candidate once and notes every access.

    Args:
        function: the launcher, loaded after `interpreter.mend`.
        inputs: drawn ones at shrunken shapes, or untouched ones at the real shapes.
        path: of the candidate's file, for the lines.
        shapes: ``small`` runs every program for real; ``real`` runs a few of each launch, whose loads of floats give zeros.
        shown: the inputs as text, for the report.

    Whatever the launcher or a kernel raises comes through, unless some launch was seen before that.
    """
    meter = _Meter(path, real=shapes == "real")
    interpreter.set_observer(meter.launched)
    notes = []
    try:
        if meter.real:
            pretend = interpreter._state["pretend"]
            poison, pretend.poison = pretend.poison, False
            try:
                with Untouched():
                    function(*inputs)
            finally:
                pretend.poison = poison
        else:
            function(*inputs)
    except Exception as error:
        if not meter.found:
            raise
        notes.append(f"only a part was seen: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    finally:
        interpreter.set_observer(None)
    if meter.left_out:
        notes.append(f"{meter.left_out} more launches are not shown")
    if not meter.found:
        notes.append("it launches no kernel of its own, so there is nothing to watch")
    return _small_enough(shapes, tuple(shown), tuple(notes), list(meter.found.values()))


def _small_enough(shapes: str, shown: tuple[str, ...], notes: tuple[str, ...], watches: Sequence[_LaunchWatch]) -> MemoryReport:
    """Coarser grids, then fewer programs, until the report can be sent."""
    for most, sampled in ((128, SAMPLED), (64, SAMPLED), (64, 8), (32, 8), (16, 4), (8, 0)):
        found = MemoryReport(shapes, shown, tuple(watch.report(most, sampled) for watch in watches), notes)
        if len(dumps(found)) <= LARGEST:
            return found
    return replace(found, launches=(), notes=(*notes, "there is too much of it to show"))


class _Meter:
    """Takes each launch in place of the interpreter."""

    def __init__(self, path: Path, *, real: bool) -> None:
        self.path = str(path)
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.real = real
        self.until = time.monotonic() + SECONDS
        self.found: dict[str, _LaunchWatch] = {}
        self.left_out = 0

    def launched(self, launch: Launch) -> None:
        constants = {name: value for name, value in launch.arguments.items() if name in launch.constexprs}
        arguments = {name: value for name, value in launch.arguments.items() if name not in constants}
        key = launch_key(launch.kernel, launch.grid, arguments, constants)
        seen = self.found.get(key)
        if seen is not None or len(self.found) >= LAUNCHES:
            if seen is not None:
                seen.count += 1
            else:
                self.left_out += 1
            if not self.real:  # what follows needs what it writes
                for index in launch.indices():
                    launch.run_program(index)
            return
        watch = self.found[key] = _LaunchWatch(self, launch)
        before, Now.watch = Now.watch, watch
        try:
            watch.run()
        finally:
            Now.watch = before


class _LaunchWatch(Watch):
    """Every access of one launch's programs."""

    def __init__(self, meter: _Meter, launch: Launch) -> None:
        self.skips_memory = meter.real
        self.count = 1
        self.counted = 0
        self._meter, self._launch = meter, launch
        self._regions = launch.memory.regions
        self._sampled = _sampled(launch.programs)
        self._maps = {number: (Counts(_extent(region)), Counts(_extent(region))) for number, region in enumerate(self._regions)}
        self._own: dict[int, dict[tuple[int, bool], list[np.ndarray]]] = {}
        self._rows: dict[tuple[int, str, int | None, int], _Row] = {}
        self._now: dict[tuple[int, bool], list[np.ndarray]] | None = None

    def run(self) -> None:
        grid = self._launch.grid
        numbers = self._sampled if self._meter.real else range(self._launch.programs)
        for number in numbers:
            x = number % grid[0]
            index = (x, number // grid[0] % grid[1], number // (grid[0] * grid[1]))
            if self.counted and (self.counted >= PROGRAMS or time.monotonic() > self._meter.until):
                self._rest(number)
                return
            self._now = self._own.setdefault(number, defaultdict(list)) if number in self._sampled else None
            self._launch.run_program(index)
            self.counted += 1

    def _rest(self, number: int) -> None:
        """Runs the others unwatched where what follows needs what they write."""
        if self._meter.real:
            return
        Now.watch = Watch()
        for position, index in enumerate(self._launch.indices()):
            if position >= number:
                self._launch.run_program(index)

    def accessed(self, verb: str, pointers: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: int | None) -> None:
        row = self._rows.setdefault((self._line(), _OPS[verb], origin, itemsize), _Row())
        chosen = np.broadcast_to(pointers, np.broadcast_shapes(pointers.shape, mask.shape))[mask] if mask is not None else pointers.ravel()
        region = self._regions[origin] if origin is not None else None
        keys = (chosen.astype(np.int64) - (region.base if region else 0)) // (region.itemsize if region else itemsize)
        row.add(coalesce(pointers, mask, itemsize), keys, chosen.size * itemsize, _extent(region) if region else 0)
        if origin is None:
            return
        reads, writes = self._maps[origin]
        for writing, counts in ((False, reads), (True, writes)):
            if verb == ("writes" if writing else "reads") or verb in ("adds to", "swaps"):
                counts.add(keys)
                if self._now is not None:
                    self._now[origin, writing].append(np.unique(keys))

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._meter.path:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return 0

    # ---- the report

    def report(self, most: int, sampled: int) -> LaunchMemory:
        grids = {number: self._grid(region, most) for number, region in enumerate(self._regions)}
        shown = sorted(self._own)
        if len(shown) > sampled:
            shown = sorted(set(self._sampled[:sampled]) & set(shown))
        notes = []
        if self.counted < self._launch.programs:
            notes.append(f"{self.counted} of {self._launch.programs} programs were interpreted")
        if any(counts.full for pair in self._maps.values() for counts in pair):
            notes.append("more elements were touched than can be counted")
        return LaunchMemory(
            kernel=self._launch.kernel,
            grid=self._launch.grid,
            programs=self._launch.programs,
            counted=self.counted,
            count=self.count,
            tensors=tuple(self._tensor(number, grids[number]) for number in grids),
            sampled=tuple(self._program(number, grids) for number in shown),
            accesses=tuple(self._access(key, row) for key, row in sorted(self._rows.items(), key=_by_line)),
            note="; ".join(notes),
        )

    def _grid(self, region: Region, most: int) -> Grid:
        tensor = _tensor_of(self._launch, region.name)
        shape = tuple(region.shape)
        return Grid(shape, tuple(tensor.stride()) if tensor is not None else (1,) * len(shape), most)

    def _tensor(self, number: int, grid: Grid) -> TensorMap:
        region = self._regions[number]
        tensor = _tensor_of(self._launch, region.name)
        (read, reads), (written, writes) = (counts.found() for counts in self._maps[number])
        elements = max(int(grid.sizes().sum()), 1)
        return TensorMap(
            name=region.name, shape=grid.shape, dtype=str(getattr(tensor, "dtype", "")).removeprefix("torch."), strides=grid.strides,
            rows=grid.rows, columns=grid.columns, row_elements=grid.row_elements, column_elements=grid.column_elements, folded=grid.folded,
            reads=grid.means(read, reads), writes=grid.means(written, writes),
            touched=round(min(np.union1d(read, written).size / elements, 1.0), 4),
            most_reads=int(reads.max(initial=0)), most_writes=int(writes.max(initial=0)),
        )  # fmt: skip

    def _program(self, number: int, grids: dict[int, Grid]) -> ProgramMap:
        grid = self._launch.grid
        touched = self._own[number]

        def ranges(origin: int, writing: bool) -> tuple[tuple[int, int], ...]:
            parts = touched.get((origin, writing))
            return grids[origin].ranges(np.unique(np.concatenate(parts))) if parts else ()

        prints = (
            Footprint(self._regions[origin].name, ranges(origin, False), ranges(origin, True)) for origin in grids
        )  # fmt: skip
        return ProgramMap(
            (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])), number,
            tuple(one for one in prints if one.reads or one.writes),
        )  # fmt: skip

    def _access(self, key: tuple[int, str, int | None, int], row: _Row) -> AccessRow:
        line, op, origin, itemsize = key
        lines = self._meter.lines
        return AccessRow(
            line=line, text=lines[line - 1].strip()[:200] if 0 < line <= len(lines) else "", op=op,
            tensor=self._regions[origin].name if origin is not None else "?", itemsize=itemsize, calls=row.calls,
            bytes_requested=row.bytes, bytes_unique=row.unique() * (self._regions[origin].itemsize if origin is not None else itemsize),
            requests=row.requests, sectors_per_request=round(row.sectors / row.requests, 2) if row.requests else 0.0,
            ideal_sectors_per_request=round(row.ideal / row.requests, 2) if row.requests else 0.0,
            masked=round(1.0 - row.active / row.lanes, 4) if row.lanes else 0.0,
        )  # fmt: skip


class _Row:
    """What adds up of one instruction."""

    def __init__(self) -> None:
        self.calls = self.bytes = self.requests = self.sectors = self.ideal = self.lanes = self.active = 0
        self._touched: Counts | None = None
        self._elsewhere: set[int] = set()

    def add(self, found: Requests, keys: np.ndarray, nbytes: int, extent: int) -> None:
        self.calls += 1
        self.bytes += nbytes
        self.requests += found.requests
        self.sectors += found.sectors
        self.ideal += found.ideal
        self.lanes += found.lanes
        self.active += found.active
        if extent:
            self._touched = self._touched or Counts(extent)
            self._touched.add(np.unique(keys))
        elif len(self._elsewhere) < 1 << 20:
            self._elsewhere.update(keys.tolist())

    def unique(self) -> int:
        return len(self._elsewhere) if self._touched is None else int(self._touched.found()[0].size)


def _sampled(programs: int) -> list[int]:
    """The first two, the last, and pairs of neighbours spread over the grid."""
    if not programs:
        return []
    spread = choose_programs(programs, SAMPLED, random.Random(0))
    return list(dict.fromkeys([0, min(1, programs - 1), programs - 1, *spread]))[:SAMPLED]


def _extent(region: Region) -> int:
    """Elements from the tensor's first one to the end of its storage."""
    return max((region.end - region.base) // max(region.itemsize, 1), 0)


def _tensor_of(launch: Launch, name: str) -> Any:
    """The tensor behind a region: an argument, what a descriptor describes, or an item of a tuple."""
    found: Any = launch.arguments
    for part in name.replace("]", "").split("["):
        found = found[int(part)] if isinstance(found, (tuple, list)) else found.get(part) if isinstance(found, dict) else None
        if found is None:
            return None
    base = getattr(found, "base", None)
    return base if base is not None and not hasattr(found, "untyped_storage") else found


def _by_line(item: tuple[tuple[int, str, int | None, int], _Row]) -> tuple[int, str, int]:
    line, op, origin, _ = item[0]
    return line, op, -1 if origin is None else origin

"""Counts what a launcher's kernels move and compute, by interpreting a few programs of each launch at the real shapes.

Nothing is read or written: loads of floats give zeros and stores do nothing, so that tensors can stay untouched memory of any size.
Integers are loaded, because other addresses are made from them. Programs whose work depends on floats are counted as if those were zero.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.judge.emulation import interpreter
from workbench.judge.emulation._mended import Now, Watch
from workbench.judge.emulation.interpreter import Launch
from workbench.judge.emulation.unsupported import InterpreterUnsupported, OutOfBoundsError
from workbench.judge.recording import sectors
from workbench.judge.recording.launches import LaunchTraffic, Traffic, launch_key
from workbench.judge.recording.sectors import SECTOR, Intervals
from workbench.judge.recording.untouched import Untouched

_TORCH_NAMES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8", "uint8": "int8",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
}  # fmt: skip


BUDGET = 12_000
"""What one call may cost to interpret: a second or two of one core. A count, not a time, so that equal candidates get equal figures."""

PATIENCE = 60.0
"""Seconds after which a program is given up, whatever it has counted."""


def measure(fn: Callable[..., Any], inputs: Sequence[Any], *, sample: int = 16, seed: int = 0, budget: int = BUDGET) -> Traffic:
    """Traffic of each distinct launch of one call of `fn`.

    Args:
        fn: the candidate's launcher, loaded after `interpreter.mend`.
        inputs: at the real shapes, best from `untouched.make_untouched`.
        sample: programs of each launch to interpret at most.
        seed: of the choice of programs.
        budget: operations to interpret; fewer programs are where it runs out, and the launch's `note` says so.
    """
    started = time.perf_counter()
    meter = _Meter(sample, seed, budget)
    pretend = interpreter._state["pretend"]
    poison, pretend.poison = pretend.poison, False
    interpreter.set_observer(meter.launched)
    error = ""
    try:
        with Untouched():
            fn(*inputs)
    except InterpreterUnsupported as raised:
        error = raised.reason
    except OutOfBoundsError as raised:
        error = str(raised)
    except Exception as raised:
        error = f"{type(raised).__name__}: {' '.join(str(raised).split())[:300]}"
    finally:
        interpreter.set_observer(None)
        pretend.poison = poison
    return Traffic(launches=tuple(meter.found.values()), seconds=time.perf_counter() - started, error=error)


class _Meter:
    """Measures each launch that it has not seen, and counts those that it has."""

    def __init__(self, sample: int, seed: int, budget: int) -> None:
        self.sample = sample
        self.random = random.Random(seed)
        self.left = float(budget)
        self.found: dict[str, LaunchTraffic] = {}

    def launched(self, launch: Launch) -> None:
        if launch.programs == 0:
            return
        constants = {name: value for name, value in launch.arguments.items() if name in launch.constexprs}
        arguments = {name: value for name, value in launch.arguments.items() if name not in constants}
        key = launch_key(launch.kernel, launch.grid, arguments, constants)
        before = self.found.get(key)
        if before is not None:
            self.found[key] = replace(before, count=before.count + 1)
            return
        # Half of what is left, so that later launches get their share.
        share = self.left / 2
        self.found[key], spent = self._measure(key, launch, share)
        self.left -= min(spent, share)

    def _measure(self, key: str, launch: Launch, budget: float) -> tuple[LaunchTraffic, float]:
        chosen = choose_programs(launch.programs, self.sample, self.random)
        counters: dict[int, _Counter] = {}
        spent = 0.0
        for program in chosen:
            # One program at least is worth more than its share.
            counter = _Counter(4 * BUDGET if not counters else budget - spent)
            before, Now.watch = Now.watch, counter
            try:
                launch.run_program(_place(program, launch.grid))
                counters[program] = counter
            except _TooLong:
                break
            finally:
                Now.watch = before
                spent += counter.cost
            if spent >= budget:
                break
        if not counters:
            return _from_arguments(key, launch), spent
        note = f"{len(counters)} of {len(chosen)} sampled programs, each is long" if len(counters) < len(chosen) else ""
        return _scaled(key, launch, counters, note), spent


def choose_programs(programs: int, sample: int, rng: random.Random) -> list[int]:
    """Numbers of the programs to interpret: all where they are few, else the first, the last, and pairs of neighbours spread over the grid.

    The order is that of worth, so that a list cut short still is a fair sample.
    """
    if programs <= sample:
        return list(range(programs))
    strata = max((sample - 2) // 2, 1)
    starts = [min(int((index + rng.random()) * programs / strata), programs - 2) for index in range(strata)]
    rng.shuffle(starts)
    chosen = dict.fromkeys([starts[0], 0, programs - 1, starts[0] + 1])
    for start in starts[1:]:
        chosen.update(dict.fromkeys((start, start + 1)))
    return list(chosen)[:sample]


def _place(program: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    x = program % grid[0]
    return x, program // grid[0] % grid[1], program // (grid[0] * grid[1])


class _TooLong(BaseException):
    """The program's budget is spent. Not an Exception, so that no candidate catches it."""


class _Counter(Watch):
    """What one program did."""

    skips_memory = True

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.cost = 0.0
        self.until = time.perf_counter() + PATIENCE
        self.parts: dict[tuple[int | None, str], list[Intervals]] = defaultdict(list)
        self.requested = 0
        self.atomics = 0
        self.steps = 0
        self.waits = True
        self.flops = 0.0
        self.dots: dict[str, float] = defaultdict(float)

    def accessed(self, verb: str, pointers: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: int | None) -> None:
        self.cost += 4.0 + pointers.size / 8192
        if self.cost > self.budget or time.perf_counter() > self.until:
            raise _TooLong
        touched = sectors.of_pointers(pointers, mask)
        self.requested += sectors.size(touched) * SECTOR
        if verb == "reads":
            self.steps += self.waits
            self.waits = False
        elif verb != "writes":
            self.atomics += int(np.count_nonzero(mask)) if mask is not None else pointers.size
        self._keep((origin, "read" if verb == "reads" else "write"), touched)

    def _keep(self, key: tuple[int | None, str], touched: Intervals) -> None:
        parts = self.parts[key]
        parts.append(touched)
        if len(parts) > 256:
            parts[:] = [sectors.merge(parts)]

    def waited(self) -> None:
        self.waits = True

    def computed(self, elements: int, weight: float = 1.0) -> None:
        self.flops += elements * weight
        self.cost += 1.0 + elements / 32768
        if self.cost > self.budget:
            raise _TooLong

    def multiplied(self, m: int, n: int, k: int, batch: int, dtype: str) -> None:
        self.dots[_TORCH_NAMES.get(dtype, dtype)] += 2.0 * m * n * k * batch

    def sets(self) -> dict[tuple[int | None, str], Intervals]:
        return {key: sectors.merge(parts) for key, parts in self.parts.items()}


def _scaled(key: str, launch: Launch, counters: dict[int, _Counter], note: str) -> LaunchTraffic:
    programs = launch.programs
    sets = {program: counter.sets() for program, counter in counters.items()}
    places = {place for found in sets.values() for place in found}
    unique: dict[tuple[int | None, str], float] = {}
    for place in places:
        parts = [found.get(place, sectors.EMPTY) for found in sets.values()]
        pairs = [
            (found.get(place, sectors.EMPTY), sets[program + 1].get(place, sectors.EMPTY))
            for program, found in sets.items()
            if program + 1 in sets
        ]
        unique[place] = sectors.estimate_union(parts, pairs, programs, _limit(launch, place[0])) * SECTOR
    origins = {origin for origin, _ in places}
    by_argument = {}
    for origin in origins:
        name = launch.memory.regions[origin].name if origin is not None else "?"
        # What is read and written moves both ways, but is one piece of memory.
        by_argument[name] = sum(value for (place, _), value in unique.items() if place == origin)
    scale = programs / len(counters)
    reads, writes = (sum(value for (_, kind), value in unique.items() if kind == wanted) for wanted in ("read", "write"))
    dots: dict[str, float] = defaultdict(float)
    for counter in counters.values():
        for dtype, flops in counter.dots.items():
            dots[dtype] += flops * scale
    each = [sum(sectors.size(part) for part in found.values()) * SECTOR for found in sets.values()]
    return LaunchTraffic(
        key=key,
        kernel=launch.kernel,
        grid=launch.grid,
        programs=programs,
        sampled=len(counters),
        unique_bytes=reads + writes,
        read_bytes=reads,
        write_bytes=writes,
        program_bytes=float(np.mean(each)),
        requested_bytes=max(sum(counter.requested for counter in counters.values()) * scale, reads + writes),
        atomics=sum(counter.atomics for counter in counters.values()) * scale,
        flops=sum(counter.flops for counter in counters.values()) * scale,
        dot_flops=dict(dots),
        steps=float(np.mean([counter.steps for counter in counters.values()])),
        by_argument=by_argument,
        note=note,
    )


def _limit(launch: Launch, origin: int | None) -> int:
    regions = launch.memory.regions
    total = regions[origin].nbytes if origin is not None else sum(region.nbytes for region in regions)
    return -(-total // SECTOR) + 1


def _from_arguments(key: str, launch: Launch) -> LaunchTraffic:
    """Where not one program could be interpreted in time: each tensor once."""
    by_argument = {region.name: float(region.nbytes) for region in launch.memory.regions}
    total = sum(by_argument.values())
    return LaunchTraffic(
        key=key,
        kernel=launch.kernel,
        grid=launch.grid,
        programs=launch.programs,
        unique_bytes=total,
        read_bytes=total,
        program_bytes=total / launch.programs,
        requested_bytes=total,
        by_argument=by_argument,
        note="one program takes too long to interpret: each of its tensors counted once",
    )

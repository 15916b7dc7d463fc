"""A few hardware counters, chosen so that a person sees where a kernel's time goes, read from what ncu prints.

What ncu prints comes out of a candidate's sandbox, so it is a claim: sizes, numbers and names are bounded before anything is made of them.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.explain.inspection import Metric
from workbench.judge.inspection.ncu import LAUNCHES

LARGEST = 1 << 20
"""Bytes of a report that are looked at."""

WHOLE_CALL = ""
"""The `Metric.kernel` of what holds for all kernels of the call together."""

_NAME = 120
_MOST = 1e18
_NEWER = 12
"""Compute capability (major) from which DRAM traffic has another name."""


@dataclass(frozen=True)
class Counter:
    """One line of the table.

    Attributes:
        source: ncu's name for it; `newer`: the one on cards from compute capability 12 on, where it differs.
        unit: of the figure shown: µs, B, %, a noun, or nothing for a count.
        fold: how the launches of one kernel become one figure: ``sum``, ``most``, or ``mean``, weighted by their time.
    """

    name: str
    source: str
    unit: str
    fold: str
    meaning: str
    newer: str = ""


_TIME = Counter(
    "time under ncu", "gpu__time_duration.sum", "µs", "sum",
    "Of all its launches in one call. ncu has each begin with cold caches, so it may be longer than in the judge's times.",
)  # fmt: skip
_READ = Counter("DRAM read", "dram__bytes_read.sum", "B", "sum", "Bytes that came from the card's memory.", "dram__bytes_op_read.sum")
_WRITTEN = Counter("DRAM written", "dram__bytes_write.sum", "B", "sum", "Bytes that went to the card's memory.", "dram__bytes_op_write.sum")

COUNTERS = (
    _TIME, _READ, _WRITTEN,
    Counter(
        "DRAM throughput", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "mean",
        "Share of the memory's peak rate. From about 80 % on, only fewer bytes make it faster.",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    Counter("L2 hits", "lts__t_sector_hit_rate.pct", "%", "mean", "Share of the sectors asked of the L2 cache that were in it."),
    Counter(
        "SM throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "mean",
        "Share of the peak of the busiest unit inside the multiprocessors. Low beside a low DRAM throughput: it waits.",
    ),
    Counter(
        "tensor cores", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", "mean",
        "Share of the cycles in which the tensor cores worked.",
    ),
    Counter(
        "FMA units", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "%", "mean",
        "Share of the peak rate at which float32 multiply-adds are issued.",
    ),
    Counter(
        "occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", "%", "mean",
        "Warps resident on a multiprocessor, of the most that fit, over the time it worked.",
    ),
    Counter("registers", "launch__registers_per_thread", "a thread", "most", "More registers leave room for fewer warps."),
    Counter("shared memory", "launch__shared_mem_per_block", "B", "most", "Of one block, what the driver keeps for itself included."),
    Counter(
        "load sectors a request", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "sectors", "mean",
        "Sectors of 32 bytes for a warp's load from global memory. 4 is enough for 4 bytes a lane, 16 for 16; 32 are scattered.",
    ),
    Counter(
        "bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "", "sum",
        "Extra cycles of shared memory because lanes of a warp met in one bank.",
    ),
)  # fmt: skip

STALLS: Mapping[str, str] = {
    f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio": words
    for reason, words in {
        "long_scoreboard": "on global memory",
        "short_scoreboard": "on shared memory",
        "barrier": "at a barrier",
        "math_pipe_throttle": "for a busy unit",
        "mio_throttle": "to ask shared memory",
        "lg_throttle": "to ask global memory",
        "wait": "on arithmetic",
    }.items()
}
_STALL_MEANING = "What a warp waits for most between two of its instructions, and how many cycles of that fall on each."

_UNITS = {
    **{word: ("µs", scale) for word, scale in (("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6))},
    **{word: ("µs", scale) for word, scale in (("nsecond", 1e-3), ("usecond", 1.0), ("msecond", 1e3), ("second", 1e6))},
    **{f"{prefix}byte": ("B", scale) for prefix, scale in (("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))},
}


@dataclass(frozen=True)
class Launch:
    """One launch that ncu counted: figures by ncu's name for them, in the units of `COUNTERS`. What the card lacks is missing."""

    kernel: str
    figures: Mapping[str, float]


def names(capability: int) -> tuple[str, ...]:
    """What to ask ncu for on a card of that compute capability (its major number)."""
    return (*(_source(counter, capability) for counter in COUNTERS), *STALLS)


def read(said: str) -> tuple[Launch, ...]:
    """The launches in what ncu printed (``--csv --page raw``); none where there is no table. Takes any text, and raises for none."""
    head: list[str] | None = None
    units: list[str] = []
    launches: list[Launch] = []
    for line in said[:LARGEST].splitlines():
        if len(launches) >= LAUNCHES:
            break
        cells = _cells(line)
        if head is None:
            head = cells if "ID" in cells and "Kernel Name" in cells else None
        elif len(cells) != len(head):
            continue
        elif (number := cells[head.index("ID")]) == "" and not units:
            units = cells
        elif number.isdigit():
            figures = {
                name: figure
                for place, name in enumerate(head)
                if "__" in name and (figure := _figure(cells[place], units[place] if units else "")) is not None
            }
            launches.append(Launch(_kernel(cells[head.index("Kernel Name")]), figures))
    return tuple(launches)


def metrics(launches: Sequence[Launch], capability: int, least_bytes: float) -> tuple[Metric, ...]:
    """The table: a kernel's launches made one, the kernel that takes longest first, the whole call last.

    Args:
        capability: as in `names`.
        least_bytes: of inputs and outputs, which a call can't do without; 0 where unknown.
    """
    kernels: dict[str, list[Launch]] = {}
    for launch in launches:
        kernels.setdefault(launch.kernel, []).append(launch)
    ordered = sorted(kernels, key=lambda kernel: -(_folded(kernels[kernel], _TIME, capability) or 0.0))
    found: list[Metric] = []
    for kernel in ordered:
        found.append(Metric(kernel, "launches", float(len(kernels[kernel])), "", "In one call."))
        found += [
            Metric(kernel, counter.name, figure, counter.unit, counter.meaning)
            for counter in COUNTERS
            if (figure := _folded(kernels[kernel], counter, capability)) is not None
        ]
        found += _stall(kernel, kernels[kernel])
    return (*found, *_whole(launches, capability, least_bytes))


def lacking(launches: Sequence[Launch], capability: int) -> tuple[str, ...]:
    """Names of counters that no launch has."""
    had = {name for launch in launches for name in launch.figures}
    return tuple(counter.name for counter in COUNTERS if _source(counter, capability) not in had)


def _whole(launches: Sequence[Launch], capability: int, least_bytes: float) -> list[Metric]:
    if len(launches) >= LAUNCHES:
        return []  # there may be more, and then it is not the whole
    found = [Metric(WHOLE_CALL, "launches", float(len(launches)), "", "In one call.")]
    totals = {counter.name: _folded(launches, counter, capability) for counter in (_TIME, _READ, _WRITTEN)}
    for counter in (_TIME, _READ, _WRITTEN):
        if (total := totals[counter.name]) is not None:
            found.append(Metric(WHOLE_CALL, counter.name, total, counter.unit, counter.meaning))
    moved, written = totals[_READ.name], totals[_WRITTEN.name]
    if moved is not None and written is not None and least_bytes > 0:
        least = f"{least_bytes / 1e6:.4g} MB"
        meaning = f"DRAM read and written, over the {least} of the inputs and outputs. Below 1 where writes stay in the L2 cache."
        found.append(Metric(WHOLE_CALL, "DRAM over the least", (moved + written) / least_bytes, "×", meaning))
    return found


def _stall(kernel: str, launches: Sequence[Launch]) -> list[Metric]:
    reasons = {words: _mean(launches, source) for source, words in STALLS.items()}
    known = {words: cycles for words, cycles in reasons.items() if cycles is not None}
    if not known:
        return []
    longest = max(known, key=lambda words: known[words])
    return [Metric(kernel, "waits most", known[longest], f"cycles {longest}", _STALL_MEANING)]


def _source(counter: Counter, capability: int) -> str:
    return counter.newer if counter.newer and capability >= _NEWER else counter.source


def _folded(launches: Sequence[Launch], counter: Counter, capability: int) -> float | None:
    source = _source(counter, capability)
    if counter.fold == "mean":
        return _mean(launches, source)
    figures = [launch.figures[source] for launch in launches if source in launch.figures]
    if len(figures) < len(launches):
        return None  # a sum of some would look like less work
    fold: Callable[[list[float]], float] = sum if counter.fold == "sum" else max
    return fold(figures) if figures else None


def _mean(launches: Sequence[Launch], source: str) -> float | None:
    """Over the launches that have it, weighted by their time where that is known of all."""
    having = [launch for launch in launches if source in launch.figures]
    weights = [launch.figures.get(_TIME.source, 0.0) for launch in having]
    if not all(weights):
        weights = [1.0] * len(having)
    return sum(weight * launch.figures[source] for weight, launch in zip(weights, having, strict=True)) / sum(weights) if having else None


def _cells(line: str) -> list[str]:
    if not line.startswith('"'):
        return []  # of the tool's other words, or of somebody else
    try:
        return next(csv.reader([line]))
    except (csv.Error, StopIteration):
        return []


def _figure(text: str, unit: str) -> float | None:
    """A plain number of a sane size in the unit shown; None for ``n/a`` and whatever else ncu or somebody else may have put there."""
    _, scale = _UNITS.get(unit.partition("/")[0], ("", 1.0))
    try:
        value = float(re.sub(r"(?<=\d),(?=\d{3})", "", text)) * scale
    except ValueError:
        return None
    return value if math.isfinite(value) and 0.0 <= value <= _MOST else None


def _kernel(name: str) -> str:
    """Its function's name alone, should ncu have printed arguments too."""
    plain = re.sub(r"[(<].*$", "", re.sub(r"^void\s+|<unnamed>::|\(anonymous namespace\)::", "", name)).strip()
    return "".join(letter if letter.isprintable() else "?" for letter in (plain or name)[:_NAME]) or "?"

"""Timelines from what a profiler or the model says: reduced to what can be sent, with a table of kernels beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.explain.inspection import KernelRow, Slice, TimeKind, Timeline

MOST_SLICES = 5_000
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of a Chrome trace that are the GPU's own time."""

_MOST_ROWS = 200


def timeline(name: str, kind: TimeKind, slices: Iterable[Slice], *, moved: Mapping[str, float] | None = None, note: str = "") -> Timeline:
    """A timeline that begins at 0, with its table.

    Args:
        slices: in any order.
        moved: bytes by kernel name, where known.
        note: why there is nothing, or what to know about it.
    """
    ordered = sorted(slices, key=lambda one: one.start_us)
    if not ordered:
        return Timeline(name, kind, note=note)
    start = ordered[0].start_us
    shifted = [replace(one, start_us=round(one.start_us - start, 3), us=round(one.us, 3)) for one in ordered]
    kept = shifted
    if len(shifted) > MOST_SLICES:  # the longest say the most
        longest = sorted(range(len(shifted)), key=lambda at: -shifted[at].us)[:MOST_SLICES]
        kept = [shifted[at] for at in sorted(longest)]
    return Timeline(
        name, kind, round(max(one.start_us + one.us for one in shifted), 3), tuple(kept), table(shifted, moved or {}),
        len(shifted) - len(kept), note,
    )  # fmt: skip


def table(slices: Sequence[Slice], moved: Mapping[str, float]) -> tuple[KernelRow, ...]:
    """All calls of each kernel together, longest first."""
    calls: dict[str, int] = defaultdict(int)
    times: dict[str, float] = defaultdict(float)
    own: dict[str, bool] = {}
    for one in slices:
        calls[one.name] += 1
        times[one.name] += one.us
        own[one.name] = one.own
    total = sum(times.values()) or 1.0
    names = sorted(times, key=lambda name: -times[name])[:_MOST_ROWS]
    return tuple(
        KernelRow(name, calls[name], round(times[name], 3), round(times[name] / total, 4), own[name], moved.get(name)) for name in names
    )


def slices_of_events(events: Iterable[Mapping[str, Any]], own: Collection[str], *, device: bool) -> list[Slice]:
    """Slices of a Chrome trace's complete events: the GPU's, or the outermost PyTorch ops of each thread.

    Args:
        events: with ``name``, ``cat``, ``ts``, ``dur`` and ``tid``, in µs.
        own: names of kernels that the candidate defines.
        device: the GPU's time, in place of the host's.
    """
    found = []
    ends: dict[Any, float] = {}
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        if device and event["cat"] in ON_DEVICE:
            name = event["name"]
            found.append(Slice(name, event["ts"], event["dur"], f"stream {event['tid']}", is_own(name, own)))
        elif not device and event["cat"] == "cpu_op" and event["ts"] >= ends.get(event["tid"], float("-inf")):
            ends[event["tid"]] = event["ts"] + event["dur"]
            found.append(Slice(event["name"], event["ts"], event["dur"], "host", False))
    return found


def is_own(kernel: str, own: Collection[str]) -> bool:
    """Whether a kernel's name is one that the candidate defines; compilers append to names."""
    return kernel in own or any(kernel.startswith((f"{name}(", f"{name}_0d")) for name in own)


def chrome(timelines: Sequence[Timeline], events: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """A trace that Perfetto and ``chrome://tracing`` open: the profiler's events where there are some, else the timeline's slices."""
    out: list[dict[str, Any]] = []
    for number, one in enumerate(timelines, 1):
        title = f"{one.name} ({one.kind})"
        out.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": title}})
        raw = events.get(one.name) if one.kind != "modelled" else None
        if raw:
            start = min(event["ts"] for event in raw)
            out += [{**event, "ph": "X", "pid": number, "ts": event["ts"] - start} for event in raw]
            continue
        tracks = {track: place for place, track in enumerate(dict.fromkeys(slice.track for slice in one.slices))}
        out += [{"ph": "M", "name": "thread_name", "pid": number, "tid": tid, "args": {"name": track}} for track, tid in tracks.items()]
        out += [
            {"ph": "X", "name": slice.name, "cat": one.kind, "pid": number, "tid": tracks[slice.track], "ts": slice.start_us,
             "dur": slice.us, "args": {**slice.parts, **slice.figures}}
            for slice in one.slices
        ]  # fmt: skip
    return {"traceEvents": out, "displayTimeUnit": "ns"}

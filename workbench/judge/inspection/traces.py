"""Timelines of one call: profiled in a worker, or modelled from what was recorded and interpreted, for the Trace tab."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench.explain import roofline, trace
from workbench.explain.inspection import Slice, Timeline
from workbench.judge.recording.launches import LaunchTraffic, Recording, Traffic
from workbench.judge.recording.modelled import LaunchTime, launch_time, library_time
from workbench.target import Target
from workbench.task import Task

EVENTS = 20_000
"""Events of a profile that are handed on."""

_MODELLED_SLICES = 2_000
_KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "cuda_runtime", "cuda_driver")


def profiled(function: Callable[..., Any], inputs: Sequence[Any], *, device: str, warm: int = 3) -> list[dict[str, Any]]:
    """Events of one warm call, in µs: ``name``, ``cat``, ``ts``, ``dur``, ``tid`` and the plain figures that came with them.

    Runs in the worker, so what it returns is a claim: see `checked_events`.
    """
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU]
    if device != "cpu":
        activities.append(torch.profiler.ProfilerActivity.CUDA)

    def synchronize() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    for _ in range(warm if device != "cpu" else 1):
        function(*inputs)
    synchronize()
    with torch.profiler.profile(activities=activities) as profiler:
        function(*inputs)
        synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        written = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    events = [event for event in written["traceEvents"] if event.get("ph") == "X" and event.get("cat") in _KEPT and "dur" in event]
    events.sort(key=lambda event: (event["cat"] not in trace.ON_DEVICE, -event["dur"]))
    return [_plain(event) for event in events[:EVENTS]]


def called_once(function: Callable[..., Any], inputs: Sequence[Any], *, device: str, warm: int = 3) -> None:
    """One warm call between cudaProfilerStart and cudaProfilerStop: all that a profiler around this process looks at."""
    import torch

    if device == "cpu":  # there is nothing to start: the profiler sees no launch
        function(*inputs)
        return
    for _ in range(warm):
        function(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    try:
        function(*inputs)
        torch.cuda.synchronize()
    finally:
        torch.cuda.profiler.stop()


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args") or {}
    return {
        "name": str(event["name"])[:200], "cat": str(event["cat"]), "ts": float(event["ts"]), "dur": float(event["dur"]),
        "tid": str(args.get("stream", event.get("tid", "")))[:40],
        "args": {key: value for key, value in args.items() if isinstance(value, (int, float)) and not isinstance(value, bool)},
    }  # fmt: skip


def checked_events(data: Any) -> list[dict[str, Any]]:
    """What a worker sent, made plain again: only the fields that are known, with values of the types that they have.

    Raises:
        ValueError: it is not what `profiled` sends.
    """
    try:
        return [_plain(dict(event)) for event in list(data)[:EVENTS] if str(event["cat"]) in _KEPT]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("its process sent what no worker sends") from error


def modelled_variant(recording: Recording, traffic: Traffic, target: Target) -> Timeline:
    """Each launch after the other, with what the model says each of its parts takes."""
    measured = {launch.key: launch for launch in traffic.launches}
    slices: list[Slice] = []
    moved: dict[str, float] = {}
    now = 0.0

    def add(name: str, time: LaunchTime, count: int, own: bool) -> None:
        nonlocal now
        parts = {
            "DRAM": time.memory, "L2": time.l2, "arithmetic": time.compute, "chain of loads": time.chain, "launch": time.overhead,
        }  # fmt: skip
        parts = {key: round(value, 3) for key, value in parts.items()}
        figures = {"DRAM bytes": round(time.dram_bytes), "L2 bytes": round(time.l2_bytes), "FLOPs": round(time.flops)}
        for _ in range(count):
            if len(slices) < _MODELLED_SLICES:
                slices.append(Slice(name, now, time.total, "modelled launches", own, parts, figures))
            now += time.total
        moved[name] = moved.get(name, 0.0) + time.dram_bytes * count

    for launch in recording.launches:
        found = measured.get(launch.key) or next((item for item in traffic.launches if item.kernel == launch.kernel), None)
        traffic_of = found or LaunchTraffic(launch.key, launch.kernel, launch.grid)
        add(launch.kernel, launch_time(launch, traffic_of, target), launch.count, True)
    for call in recording.library:
        add(f"aten::{call.op}", library_time(call, target), call.count, False)
    note = "the library's calls are drawn behind the kernels: their order is not recorded" if recording.library else ""
    return trace.timeline("variant", "modelled", slices, moved=moved, note=note if recording.launches else "")


def modelled_reference(task: Task, target: Target) -> Timeline:
    """The reference as eager PyTorch would run it: each ATen call a kernel of its own."""
    slices: list[Slice] = []
    moved: dict[str, float] = {}
    now = 0.0
    for call in roofline.eager_calls(task, target):
        name = f"aten::{call.op}"
        overhead = target.latency_us + target.launch_us
        parts = {"work": round(call.us - overhead, 3), "launch": overhead}
        figures = {"DRAM bytes": float(call.bytes), "FLOPs of products": call.flops}
        slices.append(Slice(name, now, call.us, "modelled launches", False, parts, figures))
        moved[name] = moved.get(name, 0.0) + call.bytes
        now += call.us
    note = "" if slices else "its graph could not be traced, so there is nothing to model"
    return trace.timeline("reference", "modelled", slices, moved=moved, note=note)

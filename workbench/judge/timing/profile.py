"""Which kernels one call of a candidate runs on the GPU, and how much of its time is in kernels of its own.

A claim of the candidate's process, so it makes a label, never a verdict.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch


def kernels(function: Callable[..., Any], inputs: Sequence[Any], path: Path) -> tuple[list[dict[str, Any]], float]:
    """Name, µs and whether it is the candidate's own, of each kernel that one call runs; and the µs in which any of them ran.

    Kernels of all streams count, also of those that the call did not wait for.
    """
    own = own_names(path.read_text())
    function(*inputs)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        function(*inputs)
        torch.cuda.synchronize()
    found = []
    for event in profiler.key_averages():
        micros = float(getattr(event, "self_device_time_total", 0.0))
        if micros > 0:
            found.append(
                {"name": event.key[:200], "us": micros, "own": event.key in own or any(event.key.startswith(f"{name}(") for name in own)}
            )
    return found, _busy(
        (event.time_range.start, event.time_range.end)
        for event in profiler.events()
        if event.device_type == torch.autograd.DeviceType.CUDA and float(getattr(event, "self_device_time_total", 0.0)) > 0
    )


def _busy(ranges: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(ranges):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def own_names(source: str) -> set[str]:
    """Names of the kernels that a candidate's text defines: jitted functions, and those that ``KERNELS`` lists."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(decorator) for decorator in node.decorator_list):
            names.add(node.name)
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "KERNELS" for target in node.targets):
            names |= {item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant) and isinstance(item.value, str)}
    return names

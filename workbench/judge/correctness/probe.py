"""Does the captured reference compute what the live op does? One comparison of figures, made before anything is searched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from workbench.capture.references import load_reference
from workbench.inputs import make_inputs
from workbench.records import decode
from workbench.task import Task

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}


def disagreement(task: Task, probe: Mapping[str, Any], place: str) -> str:
    """What differs between the rebuilt reference and the live op at the probe's seed; empty if nothing does.

    The probe's inputs are drawn on the CPU, and a model is constructed from the probe's own seed, as `capture.probe` did.
    """
    reference = load_reference(task, device=place, seed=probe.get("model_seed"))
    drawn = make_inputs(task.inputs, int(probe["seed"]))
    outputs = reference(*(item.to(place) if isinstance(item, torch.Tensor) else item for item in drawn))
    live: Sequence[Mapping[str, Any]] = probe["outputs"]
    if len(outputs) != len(live):
        return f"it returns {len(outputs)} tensors, the cell returns {len(live)}"
    for number, (output, figures) in enumerate(zip(outputs, live, strict=True)):
        dtype = str(output.dtype).removeprefix("torch.")
        if list(output.shape) != list(figures["shape"]) or dtype != figures["dtype"]:
            return f"output {number} is {dtype} {tuple(output.shape)}, the cell's is {figures['dtype']} {tuple(figures['shape'])}"
        if task.random:
            continue  # two runs differ anyway
        wide = output.detach().double()
        tolerance = _TOLERANCE.get(dtype, 0.0)
        magnitude = float(wide.abs().sum())
        if not _close(float(wide.sum()), decode(float, figures["sum"]), tolerance * max(magnitude, 1e-30)):
            return f"the sum of output {number} is {float(wide.sum()):.6g}, the cell's is {decode(float, figures['sum']):.6g}"
        if not _close(magnitude, decode(float, figures["abs_sum"]), tolerance * max(magnitude, 1e-30)):
            return f"the absolute sum of output {number} is {magnitude:.6g}, the cell's is {decode(float, figures['abs_sum']):.6g}"
    return ""


def _close(one: float, two: float, within: float) -> bool:
    if math.isnan(one) or math.isnan(two) or math.isinf(one) or math.isinf(two):
        return str(one) == str(two)
    return abs(one - two) <= within

"""What capture hands on: the Task, and the live op to hold it against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from workbench.capture.references import MODEL_SEED, fingerprint
from workbench.inputs import make_inputs
from workbench.task import Task


@dataclass(frozen=True)
class Captured:
    """An op, captured.

    Attributes:
        task: what to compute, complete in itself.
        value: what the live call returned. None for a file.
        live: runs the live op on other values for the Task's inputs, in order, and gives its outputs as a flat list. It reads nothing from
            the notebook that the Task lists as an input, and changes nothing there.
        shown: the value of the cell's last line if that is an expression, for display.
        device: where the captured tensors were, such as ``cpu`` or ``cuda:0``.
        notes: what a person should know: NaN in the inputs, an op that changes its input, a graph that couldn't be traced.
    """

    task: Task
    value: Any
    live: Callable[[list[Any]], list[torch.Tensor]]
    shown: Any = None
    device: str = "cpu"
    notes: tuple[str, ...] = ()


def probe(captured: Captured, seed: int) -> dict[str, Any]:
    """The live op's outputs on drawn inputs, in short, for the judge to compare its rebuilt reference against.

    The inputs are drawn on the CPU, whose generator is the same everywhere, and moved to where the captured tensors were.

    JSON data: ``{"seed", "model_seed", "device", "outputs": [{"shape", "dtype", "sum", "abs_sum", "sample": [...]}]}``. Each output is as
    `references.fingerprint` describes it; a Model was constructed after ``manual_seed(model_seed)``. NaN and infinities are encoded as
    `records.encode` does.
    """
    drawn = make_inputs(captured.task.inputs, seed)
    inputs = [value.to(captured.device) if isinstance(value, torch.Tensor) else value for value in drawn]
    with torch.no_grad():
        outputs = captured.live(inputs)
    return {
        "seed": seed,
        "model_seed": MODEL_SEED,
        "device": captured.device,
        "outputs": [fingerprint(output) for output in outputs],
    }

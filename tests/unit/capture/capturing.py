"""Helpers of these tests: a notebook's namespace, and the proof that a captured op survives the way through JSON."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from workbench import records
from workbench.capture import Captured, capture_cell
from workbench.capture.finishing import differing
from workbench.capture.references import load_reference
from workbench.inputs import make_inputs
from workbench.task import Task


def notebook(**names: Any) -> dict[str, Any]:
    """A namespace as after a first cell of imports."""
    return {"__name__": "__main__", "torch": torch, "F": F, "nn": nn, **names}


def capture(source: str, namespace: dict[str, Any] | None = None, **options: Any) -> Captured:
    """Captures a cell in a fresh notebook."""
    torch.manual_seed(0)
    return capture_cell(source, notebook() if namespace is None else namespace, **options)


def round_trip(captured: Captured, seed: int = 3) -> Task:
    """Sends the task through JSON, rebuilds it in an empty namespace and holds it against the live op on drawn inputs."""
    task = records.loads(Task, records.dumps(captured.task))
    assert task == captured.task
    assert task.id == captured.task.id
    with torch.no_grad():
        if task.format == "function":
            got = load_reference(task)(*make_inputs(task.inputs, seed))
        else:
            reference = load_reference(task, seed=0)
            got = reference(*make_inputs(task.inputs, seed))
        expected = captured.live(make_inputs(task.inputs, seed))
    assert differing(got, expected) is None
    assert [tuple(output.shape) for output in got] == [output.shape for output in task.outputs]
    assert all(bool(output.isfinite().all()) for output in got if output.is_floating_point())
    return task

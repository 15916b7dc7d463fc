"""The run that the board is looked at and measured with; its home is the benchmark, which needs no tests."""

from __future__ import annotations

from workbench.bench.sample_run import CELL, REFERENCE, TASK, run_events

__all__ = ["CELL", "REFERENCE", "TASK", "run_events"]

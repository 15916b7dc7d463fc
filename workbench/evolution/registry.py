"""The runs of this process, so that a cell that runs again finds its earlier one. They are held weakly."""

from __future__ import annotations

import weakref

from workbench.evolution.evolution import Evolution

_running: weakref.WeakValueDictionary[str, Evolution] = weakref.WeakValueDictionary()


def remember(evolution: Evolution) -> None:
    """Makes a run known to the process."""
    _running[evolution.id] = evolution


def running(run: str) -> Evolution | None:
    """The run of that id, if this process has it."""
    return _running.get(run)


def of_cell(cell: str) -> tuple[Evolution, ...]:
    """The runs that this process started from a cell, the latest last."""
    return tuple(evolution for evolution in list(_running.values()) if cell and evolution.cell == cell)


def everything() -> tuple[Evolution, ...]:
    """All runs of this process."""
    return tuple(_running.values())

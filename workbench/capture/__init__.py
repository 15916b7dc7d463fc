"""From a cell, a live call or a file to a Task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.capture.captured import Captured, probe
    from workbench.capture.cell import capture_cell
    from workbench.capture.entry import capture_call
    from workbench.capture.file import capture_file
    from workbench.capture.tracing import warm_up

_HOMES = {
    "Captured": "captured",
    "capture_call": "entry",
    "capture_cell": "cell",
    "capture_file": "file",
    "probe": "captured",
    "warm_up": "tracing",
}

__all__ = ["Captured", "capture_call", "capture_cell", "capture_file", "probe", "warm_up"]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use: its home imports torch, and `import workbench` must not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

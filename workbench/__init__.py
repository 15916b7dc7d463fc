"""Kernel Workbench: make GPU kernels fast from inside a notebook.

>>> import workbench                                   # doctest: +SKIP
>>> run = workbench.evolve(softmax, x, steps=12)       # doctest: +SKIP
>>> run.auto().wait()                                  # doctest: +SKIP
>>> run.best                                           # doctest: +SKIP

In a notebook: ``%load_ext workbench``, then ``%%evolve_kernel`` on a cell that defines an op and calls it.
"""

from __future__ import annotations

import importlib
from typing import Any

from workbench._version import __version__

__all__ = [
    "Candidate",
    "Evaluation",
    "Evolution",
    "Task",
    "Verdict",
    "__version__",
    "accept",
    "evolve",
    "evolve_profiled",
    "load_ipython_extension",
    "open",
    "unload_ipython_extension",
    "verify",
]

_HOMES = {
    "Candidate": "workbench.candidate",
    "Evaluation": "workbench.candidate",
    "Evolution": "workbench.evolution",
    "Task": "workbench.task",
    "Verdict": "workbench.candidate",
    "accept": "workbench.notebook.accept",
    "evolve": "workbench.notebook.api",
    "evolve_profiled": "workbench.notebook.profile_ops",
    "load_ipython_extension": "workbench.notebook.magics",
    "open": "workbench.notebook.api",
    "unload_ipython_extension": "workbench.notebook.magics",
    "verify": "workbench.notebook.verify",
}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use, so that ``import workbench`` needs neither torch nor IPython."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

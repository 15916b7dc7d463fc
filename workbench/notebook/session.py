"""The runs of this kernel, and which of them is the current one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import MisuseError


@dataclass
class Session:
    """The registry of running evolutions. There is one, `SESSION`, because magics and API act on the same runs."""

    runs: dict[str, Any] = field(default_factory=dict)
    current_id: str = ""

    def add(self, evolution: Any) -> None:
        """Makes a run the current one."""
        self.runs[evolution.id] = evolution
        self.current_id = evolution.id

    @property
    def current(self) -> Any:
        """The run that a line magic speaks to.

        Raises:
            MisuseError: none was started or opened yet.
        """
        if self.current_id not in self.runs:
            raise MisuseError("no run yet: put %%evolve_kernel on top of a cell, or open an earlier one with %evolve_kernel open RUN")
        return self.runs[self.current_id]


SESSION = Session()


def open_store(place: Any = None) -> Any:
    """The store beside the notebook, the one at a path or URL, or the one given."""
    from workbench import store

    if place is None:
        return store.open_default(Path.cwd())
    if isinstance(place, (str, Path)):
        return store.Store(place)
    return place

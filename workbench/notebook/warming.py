"""What makes the first `%%evolve_kernel` of a kernel answer at once: torch's tracer, which takes seconds to import, is loaded beforehand.

Not at ``%load_ext``, since importing torch is the person's business; but once a cell of theirs has imported it, and the kernel is idle.
Never in a thread: torch's tracer has one state for all threads, and a module that another thread is importing lacks its last names, so
that a capture, or a `torch.compile` of the person's, would fail beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any


class WarmUp:
    """Watches the shell's cells until torch is there. One per shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.handle: asyncio.TimerHandle | None = None
        shell.events.register("post_run_cell", self._look)
        self._look()

    def close(self) -> None:
        """Stops watching. A warm-up that waits for its turn already goes on."""
        with contextlib.suppress(ValueError):
            self._shell.events.unregister("post_run_cell", self._look)

    def _look(self, _result: Any = None) -> None:
        torch = sys.modules.get("torch")
        # While torch is being imported, in another thread say, its last names are still missing.
        if torch is None or not hasattr(torch, "compile") or self.handle is not None:
            return
        with contextlib.suppress(RuntimeError):  # a terminal has no loop that turns between cells
            self.handle = asyncio.get_running_loop().call_later(0.1, _warm)  # after the cell's answer
        self.close()


def _warm() -> None:
    from workbench.capture import warm_up

    with contextlib.suppress(Exception):  # whatever fails here will fail, and be told, where it is asked for
        warm_up()

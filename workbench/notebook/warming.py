"""What makes the first `%%evolve_kernel` of a kernel answer at once: torch's tracer, which takes seconds to import, is loaded beforehand.

Not at ``%load_ext``, since importing torch is the person's business; but once a cell of theirs has imported it, in the background.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any


class WarmUp:
    """Watches the shell's cells until torch is there. One per shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.thread: threading.Thread | None = None
        shell.events.register("post_run_cell", self._look)
        self._look()

    def close(self) -> None:
        """Stops watching. A warm-up that runs already goes on."""
        with contextlib.suppress(ValueError):
            self._shell.events.unregister("post_run_cell", self._look)

    def _look(self, _result: Any = None) -> None:
        torch = sys.modules.get("torch")
        # While torch is being imported, in another thread say, its last names are still missing.
        if torch is None or not hasattr(torch, "compile") or self.thread is not None:
            return
        self.thread = threading.Thread(target=_warm, name="workbench-warm-up", daemon=True)
        self.thread.start()
        self.close()


def _warm() -> None:
    from workbench.capture import warm_up

    with contextlib.suppress(Exception):  # whatever fails here will fail, and be told, where it is asked for
        warm_up()

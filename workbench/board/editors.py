"""The editors (CodeMirror), which a browser asks for when the board's first screen stands.

They are more than half of what the board needs there, and would keep its first screen waiting. A browser asks for those that were built
with its board: after an update under a kernel that runs, the old board gets none rather than others.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "static" / "editors.js"


def answer(request: str, wanted: str) -> tuple[dict[str, Any], list[bytes]]:
    """The message of type ``editors``, and the module's bytes beside it; none where `wanted`, its SHA-256, is that of another."""
    try:
        found, module = _read(FILE)
    except OSError as error:
        return _message(request, f"{FILE.name} can't be read here ({error.strerror}); a new install of the workbench brings it"), []
    if found != wanted:
        return _message(request, "the workbench was updated after this kernel began: restart the kernel"), []
    return _message(request), [module]


def _message(request: str, error: str = "") -> dict[str, Any]:
    return {"type": "editors", "request": request, "error": error}


@cache
def _read(file: Path) -> tuple[str, bytes]:
    module = file.read_bytes()
    return hashlib.sha256(module).hexdigest(), module

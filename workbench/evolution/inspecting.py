"""Looking into variants of a run: asked once, then kept in the store's folder. It needs the Task and the Candidate alone."""

from __future__ import annotations

import contextlib
import gzip
import importlib.metadata
import json
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.candidate import Candidate
from workbench.fleet.inspections import Inspections
from workbench.records import digest
from workbench.store.places import inspections_folder
from workbench.task import Task

_TOOLS = ("torch", "triton", "nvidia-cuda-nvrtc")
_KEPT_BYTES = 512 << 20


class Inspecting:
    """The inspections of one run.

    Args:
        task: of the run; `device`: where it runs.
        place: of its store: a folder, a ``.db`` file, the URL of a database, or ``memory``. The last two keep inspections in a
            temporary folder, which ends with the process.
    """

    def __init__(self, task: Task, *, device: str, place: str) -> None:
        self._task, self._device, self._place = task, device, place
        self._inspections = Inspections(task, device=device)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._opening = threading.Lock()

    def inspect(
        self, candidate: Candidate, parameters: Mapping[str, Any], what: str, options: Mapping[str, Any], cancel: threading.Event | None
    ) -> dict[str, Any]:  # fmt: skip
        """As `Evolution.inspect`."""
        known = self.cached(candidate, parameters, what, options)
        if known is not None:
            return known
        try:
            found = self._inspections.inspect(candidate, parameters, what, options, cancel)
        except Exception as error:  # no fault in here may reach who looks
            return {"error": f"the inspection failed: {type(error).__name__}: {error}"}
        if "error" in found:
            return found
        chrome = found.pop("chrome", None)
        with contextlib.suppress(OSError):  # a full disk: then it is only shown
            path = self._path(candidate, parameters, what, options)
            path.parent.mkdir(parents=True, exist_ok=True)
            if chrome is not None:
                trace = path.with_name(path.name.replace("trace-", "timeline-"))
                _write(trace, gzip.compress(json.dumps(chrome).encode(), mtime=0))
                found["file"] = str(trace)
            _write(path, gzip.compress(json.dumps(found).encode(), mtime=0))
            _tidy(path.parent)
        return found

    def cached(self, candidate: Candidate, parameters: Mapping[str, Any], what: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was found before; None where nothing was."""
        try:
            path = self._path(candidate, parameters, what, options)
            found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        except (OSError, ValueError, EOFError):
            return None
        return found if not found.get("file") or Path(found["file"]).exists() else None

    def close(self) -> None:
        """Ends the process that answers."""
        self._inspections.close()

    def _path(self, candidate: Candidate, parameters: Mapping[str, Any], what: str, options: Mapping[str, Any]) -> Path:
        key = digest(
            [candidate.source, candidate.entry, candidate.backend, dict(parameters), what, dict(options), self._task, self._device,
             _toolchain()], 32,
        )  # fmt: skip
        return self._folder() / f"{what}-{self._task.id}-{key}.json.gz"

    def _folder(self) -> Path:
        kept = inspections_folder(self._place)
        if kept is not None:
            return kept
        with self._opening:
            if self._temporary is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="workbench-inspections-")
            return Path(self._temporary.name)


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing: another notebook may read at the same moment."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _tidy(folder: Path) -> None:
    """Removes what was made longest ago, once it is too much."""
    files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry) for entry in folder.iterdir() if entry.name.endswith(".gz"))
    total = sum(size for _, size, _ in files)
    for made, size, file in files:
        if total <= _KEPT_BYTES or time.time() - made < 60:
            return
        file.unlink(missing_ok=True)
        total -= size


def _toolchain() -> list[str]:
    """Versions of what makes an inspection, without importing it."""
    from workbench._version import __version__

    found = [__version__]
    for name in _TOOLS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return found

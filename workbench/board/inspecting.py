"""What a person looks at in one variant (compiler stages, memory accesses, a timeline), fetched in the background.

An inspection compiles or runs the variant in a sandbox and takes seconds. It runs on a thread of its own, and its answer bears the
request's id. What nobody waits for any more is not sent.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.board.contract import Run, SendFile
from workbench.errors import WorkbenchError

AT_ONCE = 2
"""Inspections that run at the same time; the others wait their turn."""

LARGEST_FILE = 200_000_000
"""Bytes of a trace that are sent to a browser."""

OPTIONS: Mapping[str, tuple[str, ...]] = {"compiler": ("target",), "memory": ("shapes",), "trace": ("counters",)}
"""What may be asked for, and with which options. Everything else in a browser's message is dropped."""


class Inspections:
    """The inspections of one board. `send` gets every message, with bytes where a file was asked for."""

    def __init__(self, run: Run, send: SendFile) -> None:
        self._run = run
        self._send = send
        self._turns = threading.Semaphore(AT_ONCE)
        self._wanted: dict[str, threading.Event] = {}
        self._files: dict[str, str] = {}

    def begin(self, request: str, evaluation: str, what: str, options: Mapping[str, Any]) -> None:
        """Starts one; every outcome is a message."""
        if what not in OPTIONS:
            self._tell(request, "failed", f"the board can't inspect {what or 'nothing'}: it has {', '.join(OPTIONS)}")
            return
        if not hasattr(self._run, "inspect"):
            self._tell(request, "failed", "this run can't be inspected from here; open it with workbench.open")
            return
        kept = {name: str(options[name]) for name in OPTIONS[what] if options.get(name)}
        self._wanted[request] = threading.Event()
        threading.Thread(target=self._look, args=(request, evaluation, what, kept), name=f"inspect {evaluation}", daemon=True).start()

    def leave(self, request: str) -> None:
        """Nobody waits for it any more: it is called off, or not begun at all."""
        cancel = self._wanted.pop(request, None)
        if cancel is not None:
            cancel.set()

    def close(self) -> None:
        """Calls off whatever runs."""
        for request in tuple(self._wanted):
            self.leave(request)

    def save(self, request: str) -> None:
        """Sends the file that an earlier inspection named. A browser can ask for no other path."""
        name = self._files.get(request, "")
        message: dict[str, Any] = {"type": "file", "request": request, "name": Path(name).name, "error": ""}
        try:
            if not name:
                message["error"] = "there is no trace to save: look at the variant again"
            elif Path(name).stat().st_size > LARGEST_FILE:
                message["error"] = f"the trace is larger than {LARGEST_FILE // 1_000_000} MB: copy it from {name}"
            else:
                self._send(message, [Path(name).read_bytes()])
                return
        except OSError as error:
            message["error"] = f"the trace can't be read ({error.strerror or error}): look at the variant again"
        self._send(message, None)

    def _look(self, request: str, evaluation: str, what: str, options: Mapping[str, str]) -> None:
        with self._turns:
            cancel = self._wanted.get(request)
            if cancel is None:
                return
            try:
                report: Any = self._run.inspect(evaluation, what, cancel=cancel, **options)  # type: ignore[attr-defined]
            except WorkbenchError as error:
                report = {"error": str(error)}
            except Exception as error:  # whatever it is, it must reach the person who waits
                report = {"error": f"the inspection failed ({type(error).__name__}: {error})"}
        if self._wanted.pop(request, None) is None:
            return
        if report.get("error"):
            self._tell(request, "failed", str(report["error"]))
            return
        if report.get("file"):
            self._files[request] = str(report["file"])
        self._tell(request, "ready", "", report)

    def _tell(self, request: str, stage: str, message: str, report: Mapping[str, Any] | None = None) -> None:
        self._send({"type": "inspection", "request": request, "stage": stage, "message": message, "report": report}, None)

"""Inspections of one task's variants on this machine, in a process that starts with the first and ends after a while of silence."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.candidate import Candidate
from workbench.records import encode
from workbench.task import Task

IDLE_SECONDS = 120.0
_GRACE = 5.0


class Inspections:
    """Asks an inspector, from any thread that may wait; questions are answered one after another.

    Args:
        task: what the variants compute.
        device: ``auto``, ``cuda`` or ``cpu``: whether traces are measured.

    Example:
        >>> inspections = Inspections(task)                                    # doctest: +SKIP
        >>> inspections.inspect(candidate, {}, "compiler", {})["launches"]     # doctest: +SKIP
    """

    def __init__(self, task: Task, *, device: str = "auto", idle_seconds: float = IDLE_SECONDS) -> None:
        self._settings = {"task": encode(task), "device": device}
        self._lock = threading.Lock()
        self._idle_seconds = idle_seconds
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._last_words: collections.deque[str] = collections.deque(maxlen=40)
        self._number = 0
        self._timer: threading.Timer | None = None

    def inspect(
        self, candidate: Candidate, parameters: Mapping[str, Any], what: str, options: Mapping[str, Any],
        cancel: threading.Event | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What `judge.inspection.inspector.Inspector.inspect` answers. Waits; `cancel` ends the waiting with the error "cancelled"."""
        cancel = cancel or threading.Event()
        while not self._lock.acquire(timeout=0.1):
            if cancel.is_set():
                return {"error": "cancelled"}
        try:
            if cancel.is_set():
                return {"error": "cancelled"}
            if self._timer is not None:
                self._timer.cancel()
            try:
                process = self._started()
                self._number += 1
                request = {
                    "number": self._number, "candidate": encode(candidate), "parameters": encode(parameters), "what": what,
                    "options": encode(options),
                }  # fmt: skip
                self._send(process, request)
            except OSError as error:
                return {"error": f"the inspector can't be started: {error}"}
            return self._answer(process, cancel)
        finally:
            self._timer = threading.Timer(self._idle_seconds, self.close)
            self._timer.daemon = True
            self._timer.start()
            self._lock.release()

    @property
    def alive(self) -> bool:
        """Whether its process runs now."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """Ends the process and its workers, unless it is answering. It starts again with the next question."""
        if self._lock.acquire(blocking=False):
            try:
                if self._timer is not None:
                    self._timer.cancel()
                self._end()
            finally:
                self._lock.release()

    def _answer(self, process: subprocess.Popen[str], cancel: threading.Event) -> dict[str, Any]:
        told: float | None = None
        while True:
            with contextlib.suppress(queue.Empty):
                answer = self._answers.get(timeout=0.05)
                if answer is None:
                    process.wait(_GRACE)
                    last = f": {self._last_words[-1]}" if self._last_words else ""
                    return {"error": "cancelled" if told is not None else f"the inspector ended{last}"}
                if answer["number"] == self._number:
                    return dict(answer["result"])
            if cancel.is_set():
                told = told or time.monotonic()
                with contextlib.suppress(OSError):  # again and again: the first may come before the question is taken up
                    self._send(process, {"do": "cancel"})
            if told is not None and time.monotonic() - told > _GRACE:
                self._end()
                return {"error": "cancelled"}

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        package = str(Path(__file__).resolve().parents[2])
        # -P keeps the notebook's folder off the path: a torch.py beside the notebook must not be what the inspector imports.
        code = f"import sys; sys.path.append({package!r}); from workbench.judge.inspection.serve import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip
        self._process, self._answers = process, queue.Queue()
        self._last_words.clear()
        for target, arguments in ((_read_answers, (process, self._answers)), (_read_words, (process, self._last_words))):
            threading.Thread(target=target, args=arguments, name="inspections", daemon=True).start()
        self._send(process, self._settings)
        return process

    def _send(self, process: subprocess.Popen[str], message: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_answers(process: subprocess.Popen[str], answers: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError, OSError):
        for line in process.stdout:
            answers.put(json.loads(line))
    answers.put(None)


def _read_words(process: subprocess.Popen[str], words: collections.deque[str]) -> None:
    assert process.stderr is not None
    with contextlib.suppress(ValueError, OSError):
        for line in process.stderr:
            if line.strip():
                words.append(line.strip()[:400])

"""One worker's process: started closed in, spoken to through bounded channels, killed for good.

A worker serves one candidate and is then thrown away. What it says is a claim; that it ended, and how, the judge sees for itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from workbench.judge import sandbox, watchdog
from workbench.judge.shared import SharedFile
from workbench.judge.transport import Channel, ChannelError

Kind = Literal["record", "interpret", "device", "baseline"]
"""What a worker is for: recording and compiling launches, interpreting them, running on a device, running the reference."""

START_SECONDS = 120.0
_MEMORY_EVERY = 0.2


class WorkerLost(Exception):
    """The worker can't answer any more. `kind`: ended, timeout, garbled, memory, cancelled; `detail` is one line for people."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Worker:
    """A worker as the judge sees it.

    Call `start` from a thread that lives as long as the worker may: the kernel kills it when that thread ends.
    """

    def __init__(self, kind: Kind, tier: sandbox.Tier, *, target: str, shared_bytes: int, memory_cap: int, home: Path) -> None:
        self.kind = kind
        self.target = target
        self.shared = SharedFile.create(shared_bytes)
        self.cap = memory_cap
        self.ready = threading.Event()
        self.cancelled = threading.Event()
        self._directory = Path(tempfile.mkdtemp(prefix="worker-", dir=home))
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._over: str | None = None
        self._looked = 0.0
        self._tier = tier

    def start(self) -> None:
        """Starts the process; returns before it is ready."""
        ours, theirs = socket.socketpair()
        log_read, log_write = os.pipe()
        environment: dict[str, str] = {"WORKBENCH_WORKER": self.kind}
        if self.kind == "interpret":
            environment["TRITON_INTERPRET"] = "1"
        if self.kind in ("record", "interpret"):
            environment["CUDA_VISIBLE_DEVICES"] = ""
        # The reference is the person's own code: its process is not closed in, and may use the compile caches.
        tier = self._tier if self.kind != "baseline" else sandbox.Tier("not sandboxed")
        order = {"kind": self.kind, "line": theirs.fileno(), "shared": self.shared.file, "size": self.shared.size, "target": self.target}
        command = sandbox.launch(
            tier, self._directory, order=order, environment=environment, gpu=self.kind in ("device", "baseline"),
            trusted=self.kind == "baseline",
        )  # fmt: skip
        try:
            self._process = subprocess.Popen(
                command.argv, env=dict(command.environment), stdin=subprocess.DEVNULL, stdout=log_write, stderr=log_write,
                pass_fds=(theirs.fileno(), self.shared.file, *command.files), cwd="/", start_new_session=True,
            )  # fmt: skip
        finally:
            sandbox.close((*command.close, log_write))
            theirs.close()
            self._channel = Channel(ours, log_read, self._watch)

    def wait_ready(self, timeout: float = START_SECONDS) -> None:
        """Waits until PyTorch is imported and the worker asks for its candidate."""
        if not self.ready.is_set():
            self.ask({"do": "hello"}, timeout)
            self.ready.set()

    def ask(self, message: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Sends a command and returns the answer, or raises `WorkerLost`."""
        self.send(message, timeout)
        return self.receive(timeout)

    def send(self, message: Mapping[str, Any], timeout: float = 10.0) -> None:
        """Sends a command; fetch the answer by `receive`."""
        assert self._channel is not None, "start the worker first"
        try:
            self._channel.send(dict(message), timeout)
        except ChannelError as error:
            raise self._lost(error) from None

    def receive(self, timeout: float) -> dict[str, Any]:
        """The answer to the last command, or `WorkerLost`."""
        assert self._channel is not None, "start the worker first"
        try:
            return self._channel.receive(timeout)
        except ChannelError as error:
            raise self._lost(error) from None

    @property
    def log(self) -> str:
        """The end of what it printed. Untrusted."""
        return self._channel.log if self._channel is not None else ""

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def cancel(self) -> None:
        """From any thread: kills the process, so that whoever waits for it gets `WorkerLost` of kind cancelled."""
        self.cancelled.set()
        self._kill()

    def close(self) -> None:
        """Kills it and everything it started, and frees what it held. Never waits long: a process may hang in the driver."""
        self._kill()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5.0)
        if self._channel is not None:
            self._channel.close()
            self._channel = None
            self.shared.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        # Below bwrap all die with the first process of their namespace. A plain worker's children are found by descent.
        family = [] if self._tier.sandboxed and self.kind != "baseline" else watchdog.tree(process.pid)
        for pid in {process.pid, *family}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _watch(self) -> str | None:
        if self.cancelled.is_set():
            return "cancelled"
        if self._process is not None and self._process.poll() is not None:
            return "ended"
        now = time.monotonic()
        if self._process is not None and now - self._looked > _MEMORY_EVERY:
            self._looked = now
            held = watchdog.resident(self._process.pid)
            if held > self.cap or (watchdog.available() < watchdog.RESERVE and held > watchdog.RESERVE):
                self._over = f"it held {held / 2**30:.1f} GiB of memory"
                return "memory"
        return None

    def _lost(self, error: ChannelError) -> WorkerLost:
        """What happened to it, in one line. It is killed first, so that its status can be read."""
        kind = "cancelled" if self.cancelled.is_set() else error.kind
        if kind == "ended" and self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2.0)
        status = self._process.poll() if self._process is not None else None
        self._kill()
        detail = {"memory": self._over or "", "ended": end_in_words(status), "cancelled": "cancelled"}.get(kind, error.detail)
        return WorkerLost(kind, detail)


def end_in_words(status: int | None) -> str:
    """How a process ended. bwrap passes a signal on as 128 and its number."""
    if status is None:
        return "the worker closed its line"
    number = -status if status < 0 else status - 128 if status > 128 else 0
    if number:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
    return f"the process ended itself (exit status {status})"

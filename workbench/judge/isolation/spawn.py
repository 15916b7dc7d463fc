"""Two ways to a worker's process: a fresh one, or a fork of a zygote. To the judge both look the same."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from workbench.judge.isolation import sandbox, watchdog

_CREDENTIALS = struct.Struct("3i")


class Running(Protocol):
    """A worker's process from outside."""

    @property
    def pid(self) -> int | None:
        """Of the process whose end is the worker's end; None while it is not known yet."""
        ...

    def poll(self) -> int | None:
        """How it ended: an exit status, negative for a signal, or 128 and the signal; None while it runs."""
        ...

    def kill(self) -> None:
        """Kills it and all that it started. Does not wait."""
        ...


def wait(running: Running, timeout: float) -> int | None:
    """Waits for the end, for so many seconds at most."""
    deadline = time.monotonic() + timeout
    while (status := running.poll()) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return status


class Fresh:
    """A process of its own, which dies with the thread that started it."""

    def __init__(self, command: sandbox.Launch, files: tuple[int, int, int], *, closed_in: bool) -> None:
        line, log, shared = files
        self._closed_in = closed_in
        self._process = subprocess.Popen(
            command.argv, env=dict(command.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            pass_fds=(line, shared, *command.files), cwd="/", start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        # Below bwrap all die with the first process of their namespace. A plain worker's children are found by descent.
        for pid in {self.pid, *([] if self._closed_in else watchdog.tree(self.pid))}:
            _kill(pid)
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class Zygote:
    """The judge's end of one zygote, see `zygote`. Start it from a thread that lives as long as it may."""

    def __init__(self, tier: sandbox.Tier, *, kind: str, target: str, environment: Mapping[str, str], gpu: bool) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        order = {
            "zygote": True, "kind": kind, "target": target, "line": theirs.fileno(), "package": str(sandbox.PACKAGE.parent),
            "sandboxed": tier.sandboxed, "parent": os.getpid(),
        }  # fmt: skip
        command = sandbox.launch(tier, order, directory=None, environment=environment, gpu=gpu)
        try:
            self._process = subprocess.Popen(
                command.argv, env=dict(command.environment), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=None,
                pass_fds=(theirs.fileno(), *command.files), cwd="/", start_new_session=True,
            )  # fmt: skip
        finally:
            sandbox.close(command.files)
            theirs.close()
        self._line.setblocking(False)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._forks: dict[int, Fork] = {}

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, order: Mapping[str, Any], files: tuple[int, int, int]) -> Fork:
        """Asks for a worker with these descriptors: line, log and shared memory. Returns before it runs.

        Raises:
            OSError: the zygote is gone.
        """
        with self._lock:
            fork = Fork(self, next(self._numbers), closed_in=bool(order["sandboxed"]))
            self._forks[fork.number] = fork
        socket.send_fds(self._line, [json.dumps({**order, "number": fork.number}).encode()], files)
        return fork

    def pump(self) -> None:
        """Takes in what keepers said, from any thread."""
        with self._lock, contextlib.suppress(OSError):
            while True:
                data, extra, _, _ = self._line.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size))
                if not data:
                    return
                said = json.loads(data)
                fork = self._forks.get(said["worker"])
                if fork is None:
                    continue
                if "status" in said:
                    fork.status = int(said["status"])
                    del self._forks[fork.number]
                    continue
                for level, kind, value in extra:
                    if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                        fork.begun(_CREDENTIALS.unpack(value[: _CREDENTIALS.size])[0])

    def close(self) -> None:
        """Ends the zygote; what it forked dies with it."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        for pid in {self._process.pid, *watchdog.tree(self._process.pid)}:
            _kill(pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5.0)
        self._line.close()


class Fork:
    """A worker that a zygote forks. Its keeper's process id is known once the fork has happened."""

    def __init__(self, zygote: Zygote, number: int, *, closed_in: bool) -> None:
        self.number = number
        self._closed_in = closed_in
        self.status: int | None = None
        self._zygote = zygote
        self._pid: int | None = None
        self._handle: int | None = None
        self._handling = threading.Lock()  # never held while the zygote is pumped, which holds its own and calls `begun`
        self._doomed = False
        self._gone_at: float | None = None

    def begun(self, pid: int) -> None:
        """The keeper has told its id."""
        with contextlib.suppress(OSError):
            self._handle = os.pidfd_open(pid)
            self._pid = pid
        if self._doomed:
            self.kill()

    @property
    def pid(self) -> int | None:
        if self._pid is None:
            self._zygote.pump()
        return self._pid

    def poll(self) -> int | None:
        if self.status is None:
            self._zygote.pump()
        with self._handling:
            gone = self.status is None and self._handle is not None and bool(select.select([self._handle], [], [], 0)[0])
        if gone:
            # The keeper is gone: its last word is on the line by now, or it was killed.
            self._zygote.pump()
            self._close_handle(-signal.SIGKILL)
        elif self.status is None and self._pid is None and not self._zygote.alive:
            self.status = -signal.SIGKILL
        elif self.status is not None:
            self._close_handle(self.status)
        return self.status

    def kill(self) -> None:
        self._doomed = True
        if self._handle is None:
            return
        if not self._closed_in and self._pid is not None:
            # The keeper stays until it has buried what the worker left; were it killed first, that would escape.
            for pid in watchdog.tree(self._pid)[1:]:
                _kill(pid)
            return
        with self._handling, contextlib.suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _close_handle(self, status: int) -> None:
        if self.status is None:
            self.status = status
        with self._handling:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)

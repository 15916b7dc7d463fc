"""One worker's process: started closed in, spoken to through bounded channels, killed for good.

A worker serves one candidate and is then thrown away. What it says is a claim; that it ended, and how, the judge sees for itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from workbench.judge.isolation import sandbox, watchdog
from workbench.judge.isolation.spawn import Fresh, Running, Zygote, wait
from workbench.judge.protocol.shared import SharedFile
from workbench.judge.protocol.transport import Channel, ChannelError

Kind = Literal["record", "interpret", "device", "baseline"]
"""What a worker is for: recording and compiling launches, interpreting them, running on a device, running the reference."""

ON_DEVICE = ("device", "baseline")
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

    Args:
        pin: bytes of the shared memory that the card reads and writes itself, see `shared`.
        wrapper: a program that starts the worker's and watches it; `variables` are for both, and so are `readable` places.
        zygote: what forks it; None to start a fresh process, from a thread that lives as long as the worker may.
    """

    def __init__(
        self, kind: Kind, tier: sandbox.Tier, *, target: str, shared_bytes: int, memory_cap: int, home: Path,
        zygote: Zygote | None = None, pin: int = 0, wrapper: Sequence[str] = (), variables: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        self.kind = kind
        self.target = target
        self.shared = SharedFile.create(shared_bytes)
        self.cap = memory_cap
        self.ready = threading.Event()
        self.cancelled = threading.Event()
        self._greeting = threading.Lock()
        self._awake = False
        self._closing = threading.Lock()
        self._pin = pin
        self._wrapper, self._variables, self._readable = tuple(wrapper), dict(variables or {}), tuple(readable)
        self._directory = Path(tempfile.mkdtemp(prefix="worker-", dir=home))
        self._running: Running | None = None
        self._channel: Channel | None = None
        self._over: str | None = None
        self._looked = 0.0
        self._tier = tier
        self._zygote = zygote

    def start(self) -> None:
        """Starts the process; returns before it is ready.

        Raises:
            OSError: it can't be started.
        """
        ours, theirs = socket.socketpair()
        log_read, log_write = os.pipe()
        files = (theirs.fileno(), log_write, self.shared.file)
        # The reference is the person's own code: its process is not closed in, and may use the compile caches.
        trusted = self.kind == "baseline"
        tier = sandbox.Tier("not sandboxed") if trusted else self._tier
        order = sandbox.worker_order(tier, self._directory, trusted=trusted, readable=self._readable) | {
            "kind": self.kind, "line": files[0], "shared": files[2], "size": self.shared.size, "target": self.target,
        }  # fmt: skip
        try:
            if self._zygote is not None:
                self._running = self._zygote.fork(order, files)
            else:
                if tier.sandboxed:
                    order |= {"seccomp": None}  # bwrap puts it on
                command = sandbox.launch(
                    tier, order, directory=self._directory, environment=environment(self.kind) | self._variables,
                    gpu=self.kind in ON_DEVICE, trusted=trusted, wrapper=self._wrapper, readable=self._readable,
                )  # fmt: skip
                try:
                    self._running = Fresh(command, files, closed_in=tier.sandboxed)
                finally:
                    sandbox.close(command.files)
        finally:
            sandbox.close((log_write,))
            theirs.close()
            self._channel = Channel(ours, log_read, self._watch)

    def wait_awake(self, timeout: float = START_SECONDS) -> None:
        """Waits until the worker has everything but what has to run on a card. May be called by two threads at once: one of them asks."""
        with self._greeting:
            if not self._awake:
                self.ask({"do": "wake"}, timeout)
                self._awake = True

    def wait_ready(self, timeout: float = START_SECONDS) -> None:
        """Waits until the worker is warm and asks for its candidate, which makes the card busy. May be called by two threads, too."""
        self.wait_awake(timeout)
        with self._greeting:
            if not self.ready.is_set():
                self.ask({"do": "hello", "pin": self._pin}, timeout)
                if self._pin:
                    self.shared.pin(self._pin)
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

    def answered(self) -> bool:
        """Whether there is anything to receive, an answer or the worker's end. Does not wait."""
        assert self._channel is not None, "start the worker first"
        return self._channel.waiting() or self._watch() is not None

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
    def directory(self) -> Path:
        """The one place of the outside that it can write to, until `close`. What lies there is untrusted."""
        return self._directory

    @property
    def alive(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def look_after(self) -> str | None:
        """To be called now and then where nothing else waits for it: takes what it prints, and says what is wrong with it, if anything."""
        if self._channel is not None:
            _ = self._channel.log
        return self._watch()

    def cancel(self) -> None:
        """From any thread: kills the process, so that whoever waits for it gets `WorkerLost` of kind cancelled."""
        self.cancelled.set()
        if self._running is not None:
            self._running.kill()

    def finish(self, timeout: float) -> str:
        """Has it end by itself, and returns the end of what was printed, its wrapper's last words included.

        Raises:
            WorkerLost: it does not end in time.
        """
        assert self._channel is not None and self._running is not None, "start the worker first"
        self._channel.finish()
        deadline = time.monotonic() + timeout
        while self._running.poll() is None:
            _ = self._channel.log  # a full pipe would hold it
            if time.monotonic() > deadline:
                raise WorkerLost("timeout", "it does not end")
            time.sleep(0.01)
        return self._channel.log

    def kill(self) -> None:
        """Kills it, and does not wait; `close` does the rest."""
        if self._running is not None:
            self._running.kill()

    def close(self) -> None:
        """Kills it and everything it started, and frees what it held. Never waits long: a process may hang in the driver.

        From any thread, and more than once: a pool that closes meets workers that are just being buried, and a descriptor that is closed
        twice may be another's by then.
        """
        with self._closing:
            if self._running is not None:
                self._running.kill()
            if self._channel is not None:
                self._channel.close()
                self._channel = None
                self.shared.close()
            if self._running is not None:
                wait(self._running, 5.0)
            shutil.rmtree(self._directory, ignore_errors=True)

    def _watch(self) -> str | None:
        if self.cancelled.is_set():
            return "cancelled"
        if self._running is None:
            return None
        if self._running.poll() is not None:
            return "ended"
        now = time.monotonic()
        if now - self._looked > _MEMORY_EVERY and (pid := self._running.pid) is not None:
            short = watchdog.available() < watchdog.RESERVE
            limit = min(self.cap, watchdog.RESERVE) if short else self.cap
            held = watchdog.held(pid, limit)
            # Of many processes a look takes long: then look more rarely.
            self._looked = time.monotonic() + 5 * (time.monotonic() - now)
            if held > limit:
                self._over = f"it held {held / 2**30:.1f} GiB of memory"
                return "memory"
        return None

    def _lost(self, error: ChannelError) -> WorkerLost:
        """What happened to it, in one line. It is killed, if it did not end by itself."""
        kind = "cancelled" if self.cancelled.is_set() else error.kind
        status = None
        if self._running is not None:
            status = wait(self._running, 2.0) if kind == "ended" else self._running.poll()
            self._running.kill()
        detail = {"memory": self._over or "", "ended": end_in_words(status), "cancelled": "cancelled"}.get(kind, error.detail)
        return WorkerLost(kind, detail)


def environment(kind: Kind) -> dict[str, str]:
    """Variables that a kind of worker needs beyond the fixed ones."""
    variables: dict[str, str] = {}
    if kind == "interpret":
        variables["TRITON_INTERPRET"] = "1"
    if kind not in ON_DEVICE:
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables


def end_in_words(status: int | None) -> str:
    """How a process ended. bwrap passes a signal on as 128 and its number."""
    if status is None:
        return "the worker closed its line"
    number = -status if status < 0 else status - 128 if status > 128 else 0
    if number:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
    return f"the process ended itself (exit status {status})"

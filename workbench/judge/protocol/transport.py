"""One JSON line each way, with bounds on everything: time, length, and what may happen in between.

A worker may lie, flood, stay silent or die. Nothing here waits without a deadline, and nothing grows without a limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import socket
import time
from collections.abc import Callable
from typing import Any

LINE_LIMIT = 16 << 20
LOG_LIMIT = 16 << 10
TICK = 0.05
"""Seconds between looks at what no descriptor tells: memory, cancelling."""


class ChannelError(Exception):
    """Why no answer came. `kind` is one of ended, timeout, garbled, or what the watching function said."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(detail or kind)
        self.kind = kind
        self.detail = detail


class Channel:
    """The judge's end of the line to one worker, and the worker's output, which is kept as text and never read as anything else."""

    def __init__(self, line: socket.socket, log: int, watch: Callable[[], str | None]) -> None:
        """`watch` is called every tick; a text from it ends the waiting with a `ChannelError` of that kind."""
        line.setblocking(False)
        os.set_blocking(log, False)
        self._line, self._log, self._watch = line, log, watch
        self._pending = bytearray()
        self._text = bytearray()
        self._count = 0

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Sends and waits for the answer."""
        self.send(message, timeout)
        return self.receive(timeout)

    def send(self, message: dict[str, Any], timeout: float) -> None:
        """Sends without waiting for the answer; fetch that by `receive`."""
        self._count += 1
        data = memoryview(json.dumps(message | {"number": self._count}).encode() + b"\n")

        def push() -> bool:
            nonlocal data
            with contextlib.suppress(BlockingIOError):
                data = data[self._line.send(data) :]
            return not data

        self._until(push, selectors.EVENT_READ | selectors.EVENT_WRITE, timeout)

    def receive(self, timeout: float) -> dict[str, Any]:
        """The answer to the last message sent. Answers to earlier ones are dropped."""
        deadline = time.monotonic() + timeout
        while True:
            line = self._until(self._next_line, selectors.EVENT_READ, max(0.0, deadline - time.monotonic()))
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                raise ChannelError("garbled", "the worker's answer is not JSON") from None
            if not isinstance(answer, dict):
                raise ChannelError("garbled", "the worker's answer is not an object")
            if answer.get("number") == self._count:
                return answer

    def waiting(self) -> bool:
        """Whether anything has come that was not received yet. Takes what was printed meanwhile, so that nobody stands still over that."""
        with contextlib.suppress(OSError):
            self._drain()
        return b"\n" in self._pending or bool(select.select([self._line], [], [], 0)[0])

    @property
    def log(self) -> str:
        """The end of what the worker printed. Untrusted."""
        with contextlib.suppress(OSError):
            self._drain()
        return self._text.decode("utf-8", "replace")

    def finish(self) -> None:
        """Tells the worker that nothing more will come."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._line.close()
        os.close(self._log)

    def _until(self, step: Callable[[], Any], events: int, timeout: float) -> Any:
        """Repeats `step` until it returns something true."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._line, events)
            log_open = True
            selector.register(self._log, selectors.EVENT_READ)
            while True:
                try:
                    if done := step():
                        return done
                except OSError as error:
                    raise ChannelError("ended", str(error)) from None
                if log_open and not self._drain():
                    selector.unregister(self._log)
                    log_open = False
                if time.monotonic() > deadline:
                    raise ChannelError("timeout", "no answer in time")
                if said := self._watch():
                    raise ChannelError(said)
                selector.select(min(TICK, max(0.0, deadline - time.monotonic())))

    def _next_line(self) -> bytes | None:
        end = self._pending.find(b"\n")
        if end < 0:
            try:
                data = self._line.recv(1 << 16)
            except BlockingIOError:
                return None
            if not data:
                raise ConnectionResetError("the worker closed its line")
            self._pending += data
            if len(self._pending) > LINE_LIMIT:
                raise ChannelError("garbled", "the worker's answer is too long")
            end = self._pending.find(b"\n", len(self._pending) - len(data))
            if end < 0:
                return None
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line or b"null"

    def _drain(self) -> bool:
        """Takes what the worker printed, at most a few pages a call, so that a flood can't hold the judge."""
        for _ in range(16):
            try:
                data = os.read(self._log, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._text += data
            del self._text[:-LOG_LIMIT]
        return True

"""A judge's process as its caller sees it: requests in, answers out, and what it said before it died."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import errors
from workbench.errors import JudgeLostError, WorkbenchError
from workbench.records import encode
from workbench.task import Task

_LINE_LIMIT = 64 << 20
_STDERR_LINES = 40
_END_SECONDS = 5.0


class JudgeProcess:
    """One judge. Requests are answered in order; `ask` may be called by several tasks at once.

    Args:
        card: the GPU that it shall see, as ``CUDA_VISIBLE_DEVICES`` names it; None for what this process sees.
    """

    def __init__(
        self, task: Task, *, device: str, seed: int | None, limits: Mapping[str, float] | None = None, card: str | None = None,
        baselines: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.card = card
        self._settings = {"task": encode(task), "device": device, "seed": seed, "limits": dict(limits or {}), "baselines": baselines}
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._last_words: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        self._readers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Starts the process, which warms up by itself.

        Raises:
            JudgeLostError: it can't be started.
        """
        package = str(Path(__file__).resolve().parents[2])
        # -P keeps the notebook's folder off the path: a torch.py beside the notebook must not be what the judge imports.
        code = f"import sys; sys.path.append({package!r}); from workbench.judge.serve import main; main()"
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, limit=_LINE_LIMIT, start_new_session=True,
                env=dict(os.environ) | ({"CUDA_VISIBLE_DEVICES": self.card} if self.card is not None else {}),
            )  # fmt: skip
        except OSError as error:
            raise JudgeLostError(f"the judge can't be started: {error}") from error
        self._readers = [asyncio.create_task(self._read_answers()), asyncio.create_task(self._read_stderr())]
        await self._send(self._settings)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ask(self, request: Mapping[str, Any]) -> Any:
        """The result of a request.

        Raises:
            WorkbenchError: what the judge reports, in the class that it names.
            JudgeLostError: the process died.
        """
        self._count += 1
        number = self._count
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            await self._send({**request, "number": number})
            answer = await answered
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            kind = getattr(errors, answer.get("kind") or "", JudgeLostError)
            raise (kind if isinstance(kind, type) and issubclass(kind, WorkbenchError) else JudgeLostError)(answer["error"])
        return answer["result"]

    async def cancel(self) -> None:
        """Tells the judge to end what it is judging."""
        with contextlib.suppress(JudgeLostError):
            await self._send({"do": "cancel"})

    async def close(self, *, at_once: bool = False) -> None:
        """Ends the process: by the end of its input, or killed if that takes too long."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 0.01 if at_once else _END_SECONDS)
        except TimeoutError:
            # Its workers die with it: the kernel kills them when their parent ends.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _send(self, message: Mapping[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise JudgeLostError("the judge was not started")
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise JudgeLostError(self._epitaph()) from error

    async def _read_answers(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            while line := await self._process.stdout.readline():
                answer = json.loads(line)
                waiting = self._waiting.get(answer["number"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), 1.0)
        await asyncio.sleep(0)  # its last words may still be on their way
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(JudgeLostError(self._epitaph()))

    async def _read_stderr(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        while data := await self._process.stderr.read(1 << 14):
            self._last_words.extend(line[:400] for line in data.decode("utf-8", "replace").splitlines() if line.strip())

    def _epitaph(self) -> str:
        status = self._process.returncode if self._process is not None else None
        how = f"by {signal.Signals(-status).name}" if status is not None and status < 0 else f"with status {status}"
        last = f": {self._last_words[-1]}" if self._last_words else ""
        return f"the judge ended {how}{last}"

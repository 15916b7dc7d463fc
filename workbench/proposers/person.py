"""The person as a proposer: a brief waits until they hand in a kernel, or pass."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from workbench.brief import Brief, Proposal
from workbench.candidate import Backend, Candidate
from workbench.errors import MisuseError
from workbench.proposers.base import nothing


class PersonProposer:
    """Holds each brief until `answer` or `decline` is called for it, from any thread.

    Args:
        on_waiting: called with each brief as it begins to wait, for whoever shows it to the person.
    """

    name = "person"

    def __init__(self, on_waiting: Callable[[Brief], None] | None = None) -> None:
        self._on_waiting = on_waiting
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Brief, asyncio.Future[Proposal], asyncio.AbstractEventLoop]] = {}

    @property
    def waiting(self) -> tuple[Brief, ...]:
        """The briefs that nobody has answered yet, oldest first."""
        with self._lock:
            return tuple(brief for brief, _, _ in self._open.values())

    async def propose(self, brief: Brief) -> Proposal:
        """Waits for the person. Cancelling the call withdraws the brief."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Proposal] = loop.create_future()
        with self._lock:
            self._open[brief.id] = (brief, future, loop)
        try:
            if self._on_waiting is not None:
                self._on_waiting(brief)
            return await future
        finally:
            with self._lock:
                self._open.pop(brief.id, None)

    def answer(self, source: str, *, brief: str = "", backend: Backend = "triton", plan: str = "") -> None:
        """Hands in a kernel for a waiting brief; the oldest, if none is named.

        Raises:
            MisuseError: no such brief is waiting.
        """
        asked = self._find(brief)
        candidate = Candidate(
            id=asked.candidate, backend=backend, source=source, entry=asked.task.candidate_entry,
            parents=tuple(parent.candidate.id for parent in asked.parents), island=asked.island.name, proposer=self.name,
            plan=plan or "written by hand", brief=asked.id,
        )  # fmt: skip
        self._settle(asked, Proposal(brief=asked.id, candidate=candidate))

    def decline(self, *, brief: str = "", reason: str = "the person passed") -> None:
        """Passes on a waiting brief.

        Raises:
            MisuseError: no such brief is waiting.
        """
        asked = self._find(brief)
        self._settle(asked, nothing(asked, reason))

    def _find(self, brief: str) -> Brief:
        with self._lock:
            found = self._open.get(brief) if brief else next(iter(self._open.values()), None)
        if found is None:
            raise MisuseError(f"brief {brief} is not waiting for an answer" if brief else "no brief is waiting for an answer")
        return found[0]

    def _settle(self, brief: Brief, proposal: Proposal) -> None:
        with self._lock:
            entry = self._open.pop(brief.id, None)
        if entry is None:
            return
        _, future, loop = entry

        def finish() -> None:
            if not future.done():
                future.set_result(proposal)

        loop.call_soon_threadsafe(finish)

"""The seam between the proposer and whatever answers: an endpoint, or a script in tests and lessons."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from workbench.proposers.llm.calls import Delta, ModelRequest


class Transport(Protocol):
    """Carries one request and streams its answer.

    `stream` raises `TransientFault` for what may pass, `ContextTooLong` where the prompt does not fit, and
    `workbench.errors.ModelStopped` for what won't mend itself. Closing the iterator or cancelling the task ends the call at once.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]: ...


class TransientFault(Exception):
    """The call failed in a way that may pass: too many requests, a server error, a lost connection, a cut stream.

    Attributes:
        retry_after: seconds that the endpoint asks to wait; None where it said nothing.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ContextTooLong(Exception):
    """The prompt does not fit the model's context."""

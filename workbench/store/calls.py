"""Calls to language models as the store keeps them: what was asked, what came back, what it cost. Never a key, never a host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KeptCall:
    """One request on the wire and its fate; each retry is a call of its own.

    Attributes:
        key: equal for equal requests.
        brief: id of the brief that it serves.
        prompt: the messages, each with ``role`` and ``content``.
        settings: what else was sent: ``max_tokens``, ``temperature``, ``seed``.
        money: USD; None where the price is not known.
        error: one line; empty for a call that was answered.
        why: why this model was chosen.
        number: 1, 2, … in the run; `time`: when it ended, in seconds since the epoch. Both are set by the store.
    """

    key: str
    brief: str
    purpose: str
    model: str
    prompt: tuple[Mapping[str, str], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1
    reply: str = ""
    finish: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    estimated: bool = False
    money: float | None = None
    seconds: float = 0.0
    first_seconds: float | None = None
    error: str = ""
    why: str = ""
    number: int = 0
    time: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

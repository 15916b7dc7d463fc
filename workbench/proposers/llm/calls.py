"""The records of a model call: what was asked, what came back piece by piece, and what it cost. None holds a key or a host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from workbench.records import digest


@dataclass(frozen=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class ModelRequest:
    """What is asked of a model. `max_tokens` bounds the answer."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    seed: int | None = None

    @property
    def key(self) -> str:
        """Equal for equal requests: what a replay looks an answer up by. The cap on the answer, which the budget may lower, is no part."""
        return digest(replace(self, max_tokens=0), 24)


@dataclass(frozen=True)
class Delta:
    """One piece of an answer as it streams in. Counts of tokens come with the last piece, where the endpoint sends them."""

    text: str = ""
    finish: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int = 0


@dataclass(frozen=True)
class ModelCall:
    """One request on the wire and its fate; each retry is a call of its own.

    Attributes:
        brief: id of the brief that it serves.
        purpose: ``seed``, ``step``, ``repair``, ``crossover``, or ``correction`` of an answer that could not be used.
        attempt: 1, 2, … of the same request.
        reply: the text that came, all of it or what came before the fault.
        finish: the endpoint's reason for the end: ``stop``, ``length``, …; empty where it never said.
        tokens_in: prompt tokens; `cached`: those of them that the provider had cached.
        estimated: the endpoint sent no usable count, so bytes were counted.
        money: USD; None where the model's price is not known.
        seconds: wall time of the call; `first_seconds`: until the first piece of text.
        error: one line; empty for a call that succeeded.
    """

    brief: str
    purpose: str
    request: ModelRequest
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

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

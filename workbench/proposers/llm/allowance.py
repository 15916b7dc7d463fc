"""Whether a call may be made at all: its worst case is held against what is left, before it is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.brief import Budget
from workbench.proposers.llm.calls import ModelRequest
from workbench.proposers.llm.prices import Price

SHORTEST = 2048
"""An answer may be capped lower than asked for where the budget has no room for more, but not below this many tokens."""


@dataclass(frozen=True)
class WorstCase:
    """The most that a call can cost: its whole prompt and the longest answer. `money` is None where the price is not known."""

    tokens: int
    money: float | None


def worst_case(tokens_in: int, max_tokens: int, price: Price | None) -> WorstCase:
    """The dearest outcome of a call with that prompt and that cap on its answer."""
    return WorstCase(tokens_in + max_tokens, None if price is None else price.money(tokens_in, max_tokens))


def refusal(coming: WorstCase, left: Budget, model: str, *, tokens: int = 0, money: float = 0.0) -> str:
    """Why `coming` must not be sent, in one line; empty where it may.

    Args:
        left: what the brief says is left.
        tokens: spent since the brief was made, or reserved by calls in flight; `money` likewise, in USD.
    """
    if left.tokens is not None and coming.tokens > left.tokens - tokens:
        rest = max(0, left.tokens - tokens)
        return f"the token budget is used up: a call to {model} may take {coming.tokens:,} tokens and {rest:,} are left"
    if left.money is not None:
        if coming.money is None:
            return (
                f"the price of {model} is not known, so a money budget can't be kept: add it to the price table, or give --tokens instead"
            )
        if coming.money > left.money - money:
            rest_money = max(0.0, left.money - money)
            return f"the money budget is used up: a call to {model} may cost {coming.money:.4f} USD and {rest_money:.4f} are left"
    return ""


def fit(request: ModelRequest, tokens_in: int, left: Budget, price: Price | None) -> ModelRequest:
    """The request with its cap on the answer lowered to what is left, where a sensible answer still has room."""
    room: float = request.max_tokens
    if left.tokens is not None:
        room = min(room, left.tokens - tokens_in)
    if left.money is not None and price is not None and price.output:
        room = min(room, (left.money * 1e6 - tokens_in * price.input) / price.output)
    return replace(request, max_tokens=int(room)) if min(SHORTEST, request.max_tokens) <= room < request.max_tokens else request

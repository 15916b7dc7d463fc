"""One answer from one model: budget first, then the call, its retries, and a record of each attempt."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from workbench.brief import Budget, Usage
from workbench.errors import ModelStopped
from workbench.proposers.llm.allowance import WorstCase, fit, refusal, worst_case
from workbench.proposers.llm.calls import Delta, ModelCall, ModelRequest
from workbench.proposers.llm.prices import Price, price_of
from workbench.proposers.llm.tokens import count, count_messages
from workbench.proposers.llm.transport import ContextTooLong, TransientFault, Transport

UNKNOWN_DENSITY = 1.3
"""How many times as many tokens as estimated a prompt may have, before an endpoint has told of any."""
MARGIN = 1.05
"""By how much a prompt may be denser in tokens than the densest one so far."""


@dataclass(frozen=True)
class Retry:
    """How often a call that failed in a passing way is made again, and how long to wait before, in seconds.

    The n-th wait is ``first * factor**n`` with up to a quarter more by chance, or what the endpoint asks for if that is longer. An endpoint
    that asks for more than `longest` is given up.
    """

    attempts: int = 5
    first: float = 1.0
    factor: float = 2.5
    longest: float = 120.0

    def wait(self, attempt: int, asked: float | None, seed: int) -> float:
        chance = random.Random(f"{seed}:{attempt}").random()
        own = min(self.longest, self.first * self.factor ** (attempt - 1) * (1 + chance / 4))
        return max(own, asked or 0.0)


@dataclass(frozen=True)
class Errand:
    """Whom a call serves. `spent` is what the same brief has used so far, `left` what the brief allows in all."""

    brief: str
    purpose: str
    left: Budget
    seed: int = 0


class Caller:
    """Makes calls within the budget; knows what calls in flight may still cost.

    Args:
        on_delta: called with (brief id, text) for each piece as it streams in.
        on_call: called with the record of each attempt when it has ended, however it ended.
        recall: the stored call of a request key, or None; a hit is answered without a call.

    Attributes:
        left: gives what is left now, with all calls that have ended taken off; without it what the brief says counts, and what was
            spent on that brief since.
    """

    def __init__(
        self,
        transport: Transport,
        prices: Mapping[str, Price],
        retry: Retry,
        on_delta: Callable[[str, str], None] | None = None,
        on_call: Callable[[ModelCall], None] | None = None,
        recall: Callable[[str], ModelCall | None] | None = None,
    ) -> None:
        self.transport, self.prices, self.retry = transport, prices, retry
        self.on_delta, self.on_call, self.recall = on_delta, on_call, recall
        self.left: Callable[[], Budget] | None = None
        self._in_flight: dict[int, WorstCase] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._density: dict[str, float] = {}

    async def call(self, request: ModelRequest, errand: Errand, spent: list[ModelCall]) -> ModelCall:
        """The answered call. Every attempt is appended to `spent`, so that its cost is known however this ends.

        Raises:
            ModelStopped: the budget refuses it, the endpoint does, or every attempt failed.
            ContextTooLong: the prompt does not fit.
        """
        stored = self.recall(request.key) if self.recall else None
        if stored is not None and not stored.error:
            self._tell(errand.brief, stored.reply)
            return replace(stored, brief=errand.brief, tokens_in=0, tokens_out=0, cached=0, money=0.0)
        for attempt in range(1, self.retry.attempts + 1):
            sent, coming = await self._reserve(request, errand, spent)
            try:
                return await self._attempt(sent, errand, attempt, spent)
            except TransientFault as fault:
                asked, reason = fault.retry_after, str(fault)
            finally:
                self._release(coming)
            if asked is not None and asked > self.retry.longest:
                raise ModelStopped(f"{request.model} asks to wait {asked:.0f} s: {reason}")
            if attempt < self.retry.attempts:
                await asyncio.sleep(self.retry.wait(attempt, asked, errand.seed))
        raise ModelStopped(f"{request.model} failed {self.retry.attempts} times, the last time so: {reason}")

    async def _reserve(self, request: ModelRequest, errand: Errand, spent: list[ModelCall]) -> tuple[ModelRequest, WorstCase]:
        """The request as it may be sent, and what it may cost, set aside. Where only calls in flight are in the way, they are awaited."""
        price = price_of(request.model, self.prices)
        prompt = math.ceil(count_messages(request.messages) * self._density.get(request.model, UNKNOWN_DENSITY))
        while True:
            flying = tuple(self._in_flight.values())
            if self.left is None:
                left, ended = errand.left, spent
            else:
                left, ended = self.left(), []
                request = request if flying else fit(request, prompt, left, price)
            coming = worst_case(prompt, request.max_tokens, price)
            tokens, money = sum(call.tokens for call in ended), sum(call.money or 0.0 for call in ended)
            why = refusal(
                coming, left, request.model,
                tokens=tokens + sum(other.tokens for other in flying), money=money + sum(other.money or 0.0 for other in flying),
            )  # fmt: skip
            if not why:
                self._in_flight[id(coming)] = coming
                return request, coming
            if not flying or self.left is None:
                raise ModelStopped(why, "budget")
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)

    def _release(self, coming: WorstCase) -> None:
        self._in_flight.pop(id(coming), None)
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def _attempt(self, request: ModelRequest, errand: Errand, attempt: int, spent: list[ModelCall]) -> ModelCall:
        start, first = time.monotonic(), None
        pieces: list[str] = []
        last, error = Delta(), ""
        stream = self.transport.stream(request)
        try:
            async for delta in stream:
                if delta.text:
                    first = first if first is not None else time.monotonic() - start
                    pieces.append(delta.text)
                    self._tell(errand.brief, delta.text)
                last = Delta(
                    finish=delta.finish or last.finish,
                    tokens_in=last.tokens_in if delta.tokens_in is None else delta.tokens_in,
                    tokens_out=last.tokens_out if delta.tokens_out is None else delta.tokens_out,
                    cached=delta.cached or last.cached,
                )
            if not "".join(pieces).strip() and last.finish != "length":  # a model may spend its whole cap on thinking
                raise TransientFault("the answer was empty")
        except (TransientFault, ContextTooLong, ModelStopped) as fault:
            error = str(fault)
            raise
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        finally:
            if close := getattr(stream, "aclose", None):
                await close()
            call = self._record(request, errand, attempt, "".join(pieces), last, error, time.monotonic() - start, first)
            spent.append(call)
            if self.on_call:
                self.on_call(call)
        return call

    def _record(
        self,
        request: ModelRequest,
        errand: Errand,
        attempt: int,
        reply: str,
        last: Delta,
        error: str,
        seconds: float,
        first: float | None,
    ) -> ModelCall:
        prompt, answer = count_messages(request.messages), count(reply)
        sound = _plausible(last.tokens_in, prompt, prompt) and _plausible(last.tokens_out, answer, request.max_tokens)
        if sound:
            told = MARGIN * (last.tokens_in or 0) / prompt
            self._density[request.model] = max(self._density.get(request.model, 0.0), told)
            tokens_in, tokens_out, cached = last.tokens_in or 0, last.tokens_out or 0, last.cached if isinstance(last.cached, int) else 0
        elif error and not reply:  # refused or lost before an answer began: nobody charges for that
            tokens_in, tokens_out, cached = 0, 0, 0
        else:
            tokens_in, tokens_out, cached = prompt, answer, 0
        price = price_of(request.model, self.prices)
        return ModelCall(
            brief=errand.brief,
            purpose=errand.purpose,
            request=request,
            attempt=attempt,
            reply=reply,
            finish=last.finish,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cached=cached,
            estimated=not sound and tokens_in > 0,
            money=None if price is None else price.money(tokens_in, tokens_out, cached),
            seconds=round(seconds, 4),
            first_seconds=None if first is None else round(first, 4),
            error=error,
        )

    def _tell(self, brief: str, text: str) -> None:
        if self.on_delta:
            self.on_delta(brief, text)


def _plausible(told: int | None, least: int, most: int) -> bool:
    """Whether an endpoint's count can be true: within a factor of six of what bytes say, with room for a chat's own frame."""
    return isinstance(told, int) and least / 6 <= told <= most * 6 + 1000 and told > 0


def usage_of(calls: list[ModelCall]) -> Usage:
    """What all attempts of one proposal cost together. A price that is not known counts as 0 and marks the sum as estimated."""
    return Usage(
        tokens_in=sum(call.tokens_in for call in calls),
        tokens_out=sum(call.tokens_out for call in calls),
        money=sum(call.money or 0.0 for call in calls),
        estimated=any(call.estimated or (call.money is None and call.tokens > 0) for call in calls),
    )

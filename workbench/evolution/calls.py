"""The calls to models in one run: kept in the store as they end, heard while they stream, paid for exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from workbench.brief import Budget, Usage
from workbench.evolution.recorder import Recorder
from workbench.evolution.stream import Stream, Written
from workbench.search import Search
from workbench.store import KeptCall


class Calls:
    """Hears a model proposer, and knows what each brief's calls have cost.

    A call is in the store before its answer is used. What a proposal costs is the sum of its brief's stored calls: after a ``kill -9``
    between the two, the stored answer is taken in place of a new call, and is paid for then, once.
    """

    def __init__(
        self, recorder: Recorder, search: Search, stream: Stream, keep: Callable[[KeptCall], object], note: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._recorder, self._search, self._stream, self._keep, self._note = recorder, search, stream, keep, note
        self._paid: dict[str, list[KeptCall]] = {}
        self._why: dict[str, str] = {}
        for brief in search.open_briefs:
            if search.received(brief.id) is None and (kept := recorder.store.calls(recorder.run, brief.id)):
                self._paid[brief.id] = list(kept)

    def listen_to(self, proposers: Iterable[Any]) -> None:
        """Hears those proposers that call models."""
        for proposer in proposers:
            if calls_models(proposer):
                proposer.listen(
                    on_delta=self._delta,
                    on_call=self._ended,
                    on_choice=self._chosen,
                    on_note=self._note,
                    recall=self._recall,
                    left=self.left,
                )

    def usage(self, brief: str) -> Usage:
        """What the calls for a brief have cost so far, in this process and in earlier ones. An unknown price counts as nothing."""
        calls = self._paid.get(brief, ())
        return Usage(
            tokens_in=sum(call.tokens_in for call in calls), tokens_out=sum(call.tokens_out for call in calls),
            money=sum(call.money or 0.0 for call in calls),
            estimated=any(call.estimated or (call.money is None and call.tokens > 0) for call in calls),
        )  # fmt: skip

    def left(self) -> Budget:
        """What is left at this moment: the caps, less what was charged, less the calls of briefs that are still to be answered."""
        budget, spent = self._search.budget, self._search.spent
        unsettled = [self.usage(brief) for brief in self._paid]
        tokens = (spent.tokens or 0) + sum(usage.tokens_in + usage.tokens_out for usage in unsettled)
        money = (spent.money or 0.0) + sum(usage.money for usage in unsettled)
        return Budget(
            tokens=None if budget.tokens is None else max(0, budget.tokens - tokens),
            money=None if budget.money is None else max(0.0, budget.money - money),
        )

    def settled(self, brief: str) -> None:
        """The brief is answered, and its calls are charged."""
        self._paid.pop(brief, None)
        self._why.pop(brief, None)
        self._stream.close(brief)

    # ---- called by the proposer, in the run's thread

    def _chosen(self, brief: str, choice: Any) -> None:
        self._why[brief] = choice.why
        self._stream.tell(Written("begins", brief, choice.model, why=choice.why))

    def _delta(self, brief: str, text: str) -> None:
        self._stream.tell(Written("text", brief, text=text))

    def _ended(self, call: Any) -> None:
        kept = _kept(call, self._why.get(call.brief, ""))
        self._paid.setdefault(call.brief, []).append(kept)
        self._keep(kept)
        self._stream.tell(Written("void" if call.error else "ends", call.brief, kept.model, call.error))

    def _recall(self, key: str) -> Any:
        """The stored answer to a request of this run; None where there is none."""
        for call in reversed(self._recorder.calls(key)):
            if not call.error:
                return _made(call)
        return None


def calls_models(proposer: Any) -> bool:
    """Whether a proposer calls language models: such a one can be listened to, and its name begins so."""
    return proposer.name.startswith("llm:") and hasattr(proposer, "listen")


def _kept(call: Any, why: str) -> KeptCall:
    request = call.request
    shared = {name: value for name, value in asdict(call).items() if name != "request"}
    return KeptCall(
        key=request.key, model=request.model, why=why,
        prompt=tuple({"role": message.role, "content": message.content} for message in request.messages),
        settings={"max_tokens": request.max_tokens, "temperature": request.temperature, "seed": request.seed}, **shared,
    )  # fmt: skip


def _made(kept: KeptCall) -> Any:
    from workbench.proposers.llm import Message, ModelCall, ModelRequest

    messages = tuple(Message(_role(one), one["content"]) for one in kept.prompt)
    request = ModelRequest(kept.model, messages, **kept.settings)
    return ModelCall(
        brief=kept.brief, purpose=kept.purpose, request=request, attempt=kept.attempt, reply=kept.reply, finish=kept.finish,
        tokens_in=kept.tokens_in, tokens_out=kept.tokens_out, cached=kept.cached, estimated=kept.estimated, money=kept.money,
        seconds=kept.seconds, first_seconds=kept.first_seconds,
    )  # fmt: skip


def _role(message: Mapping[str, str]) -> Any:
    return message["role"]

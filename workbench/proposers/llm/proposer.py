"""The proposer that asks a language model: brief -> prompt -> answer -> candidate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from workbench.brief import Brief, Budget, Proposal
from workbench.candidate import Candidate, Evaluation
from workbench.errors import MisuseError, ModelStopped
from workbench.proposers.llm.bandit import Bandit, Choice
from workbench.proposers.llm.caller import Caller, Errand, Retry, usage_of
from workbench.proposers.llm.calls import ModelCall, ModelRequest
from workbench.proposers.llm.endpoint import Endpoint, Timeouts
from workbench.proposers.llm.parser import Reply, Wanted, parse
from workbench.proposers.llm.prices import Price, load_prices, price_of
from workbench.proposers.llm.prompts import LIMITS, PURPOSES, ExpertSource, citable, render
from workbench.proposers.llm.rewards import reward_of
from workbench.proposers.llm.tokens import count_messages
from workbench.proposers.llm.transport import ContextTooLong, Transport
from workbench.records import digest

_CONCERNS_ALL = {"key", "quota"}
_CUTS = 2


class LlmProposer:
    """Asks one of several models, through any endpoint that speaks the chat completions API.

    The key is read from OPENAI_API_KEY and is never stored, logged or shown. Callbacks run in the event loop that proposes,
    and what they raise ends the proposal: an evolution that can't store a call must not go on.

    >>> proposer = LlmProposer(("gpt-5", "gpt-5-mini"))
    >>> proposer
    LlmProposer(models=('gpt-5', 'gpt-5-mini'))
    >>> proposer.name
    'llm:gpt-5,gpt-5-mini'

    Args:
        models: names as the endpoint knows them; a bandit picks one for each piece of work.
        base_url: of the endpoint; OPENAI_BASE_URL where None.
        transport: what carries the calls, such as a `ScriptedModel`; by default the endpoint.
        prices: a table by model, or a file that extends the shipped one.
        max_output: cap on the tokens of one answer, thinking included.
        concurrency: calls at the same time; further proposals wait.
        diffs: whether the models may answer small changes with search/replace blocks; weak models do better without.
        corrections: how often an answer that can't be used is asked for again.
        on_delta: called with (brief id, text) as an answer streams in; a call that is recorded with an error voids its pieces.
        on_call: called with the `ModelCall` of each attempt.
        on_choice: called with (brief id, `Choice`) when a model was picked.
        on_note: called with a line that the person should see once.
        recall: the stored, answered call of a request key, or None: a replay takes it in place of a new call.
    """

    def __init__(
        self,
        models: tuple[str, ...] | str,
        base_url: str | None = None,
        *,
        transport: Transport | None = None,
        prices: Mapping[str, Price] | Path | None = None,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        max_output: int = 8192,
        temperature: float | None = None,
        concurrency: int = 4,
        diffs: bool = True,
        corrections: int = 1,
        seed: int = 0,
        expert_source: ExpertSource | None = None,
        on_delta: Callable[[str, str], None] | None = None,
        on_call: Callable[[ModelCall], None] | None = None,
        on_choice: Callable[[str, Choice], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        recall: Callable[[str], ModelCall | None] | None = None,
    ) -> None:
        names = models.split(",") if isinstance(models, str) else models
        self.models = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
        if not self.models:
            raise MisuseError("no model was named: give one, such as --model gpt-5-mini")
        self.name = f"llm:{','.join(self.models)}"
        table = load_prices(prices) if prices is None or isinstance(prices, Path) else prices
        self.on_choice, self.on_note = on_choice, on_note
        self.bandit = Bandit(self.models, seed=seed, expected={model: _typical_cost(model, table) for model in self.models})
        self._caller = Caller(transport or Endpoint(base_url, timeouts), table, retry or Retry(), on_delta, on_call, recall)
        self._max_output, self._temperature, self._diffs, self._corrections = max_output, temperature, diffs, corrections
        self._expert_source = expert_source
        self._concurrency = concurrency
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._stopped: dict[str, ModelStopped] = {}
        self._noted: set[str] = set()

    def __repr__(self) -> str:
        return f"LlmProposer(models={self.models!r})"

    def listen(
        self,
        *,
        on_delta: Callable[[str, str], None] | None = None,
        on_call: Callable[[ModelCall], None] | None = None,
        on_choice: Callable[[str, Choice], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        recall: Callable[[str], ModelCall | None] | None = None,
        left: Callable[[], Budget] | None = None,
    ) -> None:
        """Sets the callbacks that are given; those of the constructor stay otherwise.

        `left` says what is left of the budget now, everything that has been paid taken off. With it calls in flight at the same time keep
        the caps together: one that could pass a cap only because of them waits for them.
        """
        self._caller.on_delta = on_delta or self._caller.on_delta
        self._caller.on_call = on_call or self._caller.on_call
        self._caller.recall = recall or self._caller.recall
        self._caller.left = left or self._caller.left
        self.on_choice = on_choice or self.on_choice
        self.on_note = on_note or self.on_note

    async def propose(self, brief: Brief) -> Proposal:
        """A candidate, or None with the reason in one line.

        Raises:
            ModelStopped: no further call can succeed, or the budget does not allow one; the reason is one line.
        """
        if brief.kind not in PURPOSES:
            return Proposal(brief.id, None, f"a model does not answer a brief of kind {brief.kind}")
        async with self._slot():
            return await self._propose(brief)

    def observe(self, brief: Brief, proposal: Proposal, evaluation: Evaluation) -> None:
        """Tells the bandit what came of an answer. Also for the stored answers of a run that goes on."""
        if proposal.candidate is None or not proposal.candidate.proposer.startswith("llm:"):
            return
        model = proposal.candidate.proposer.removeprefix("llm:")
        reward = reward_of(brief, evaluation)
        if reward is not None and model in self.models:
            cost = proposal.usage.money if price_of(model, self._caller.prices) else None
            self.bandit.learn(brief.kind, model, reward, cost or None)

    async def _propose(self, brief: Brief) -> Proposal:
        spent: list[ModelCall] = []
        problem, cut = "", False
        for turn in range(1 + self._corrections):
            call = await self._ask(brief, "correction" if turn else brief.kind, problem, spent, longer=cut)
            reply = parse(call.reply, self._wanted(brief), finish=call.finish)
            problem, cut = self._objection(brief, reply), call.finish == "length"
            if not problem:
                return Proposal(brief.id, _candidate(brief, call.request.model, reply), usage=usage_of(spent))
            self.bandit.learn(brief.kind, call.request.model, 0.0, call.money)
        return Proposal(brief.id, None, f"{call.request.model}: {problem}", usage_of(spent))

    async def _ask(self, brief: Brief, purpose: str, problem: str, spent: list[ModelCall], *, longer: bool) -> ModelCall:
        """One answer, from the first of the models that can give one."""
        stops = dict(self._stopped)
        while True:
            able = [model for model in self.models if model not in stops]
            if not able:
                self._stopped.clear()  # once the person has mended what was wrong, the next brief tries again
                raise _summary(stops, spent)
            limit = LIMITS[brief.kind]
            request = self._request(brief, able[0], limit, problem, longer)
            model = self._answered(request, able)
            if not model:
                choice = self.bandit.choose("repair" if purpose == "correction" else brief.kind, able)
                self._show(brief, choice)
                model = choice.model
            for _ in range(1 + _CUTS):
                request = replace(request, model=model)
                try:
                    return await self._caller.call(request, Errand(brief.id, purpose, brief.left, brief.seed), spent)
                except ContextTooLong as fault:
                    stop = ModelStopped(f"{fault} (after cutting the prompt)", "context")
                    limit = count_messages(request.messages) // 2
                    request = self._request(brief, model, limit, problem, longer)
                except ModelStopped as fault:
                    stop = ModelStopped(str(fault), fault.kind)
                    break
            for one in self.models if stop.kind in _CONCERNS_ALL else (model,):
                stops[one] = stop
                if stop.kind not in ("budget", "context"):  # those depend on the brief, the others on the model
                    self._stopped[one] = stop
            if len(stops) < len(self.models):
                self._note(f"{model} is not asked any more: {stop}")

    def _answered(self, request: ModelRequest, models: list[str]) -> str:
        """The model whose stored answer this request has, whichever the bandit would choose now; empty where there is none."""
        recall = self._caller.recall
        return next((model for model in models if recall and recall(replace(request, model=model).key)), "")

    def _request(self, brief: Brief, model: str, limit: int, problem: str, longer: bool) -> ModelRequest:
        messages = render(brief, expert_source=self._expert_source, limit=limit, diffs=self._diffs, problem=problem)
        return ModelRequest(model, messages, self._max_output * (2 if longer else 1), self._temperature, brief.seed & 0x7FFFFFFF)

    def _wanted(self, brief: Brief) -> Wanted:
        task = brief.task
        parameters = None if task.format == "model" else tuple(spec.name for spec in task.inputs)
        parent = brief.parents[0].candidate.source if brief.parents and brief.kind in ("step", "repair") else ""
        return Wanted(task.candidate_entry, parameters, parent, citable(brief))

    def _objection(self, brief: Brief, reply: Reply) -> str:
        """Why the answer is of no use; empty where it is."""
        if reply.problem:
            return reply.problem
        if digest(reply.source) in brief.tried:
            return "this very module was tried already: change something that matters"
        return ""

    def _show(self, brief: Brief, choice: Choice) -> None:
        if price_of(choice.model, self._caller.prices) is None:
            self._note(f"the price of {choice.model} is not known: its calls are counted in tokens, not in money")
        if self.on_choice:
            self.on_choice(brief.id, choice)

    def _note(self, line: str) -> None:
        if self.on_note and line not in self._noted:
            self._noted.add(line)
            self.on_note(line)

    def _slot(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self._concurrency))
        return self._slots[1]


def _candidate(brief: Brief, model: str, reply: Reply) -> Candidate:
    return Candidate(
        id=brief.candidate,
        backend="cuda" if reply.backend == "cuda" else "triton",
        source=reply.source,
        entry=brief.task.candidate_entry,
        parents=tuple(parent.candidate.id for parent in brief.parents),
        island=brief.island.name,
        proposer=f"llm:{model}",
        plan=reply.plan,
        brief=brief.id,
        cites=reply.cites,
    )


def _typical_cost(model: str, prices: Mapping[str, Price]) -> float | None:
    price = price_of(model, prices)
    return None if price is None else price.money(4000, 2000)


def _summary(stops: Mapping[str, ModelStopped], spent: list[ModelCall]) -> ModelStopped:
    """One reason for all models."""
    reasons = list(dict.fromkeys(str(stop) for stop in stops.values()))
    kinds = {stop.kind for stop in stops.values()}
    return ModelStopped("; ".join(reasons), kinds.pop() if len(kinds) == 1 else "endpoint", usage_of(spent) if spent else None)

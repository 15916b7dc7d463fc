"""Who answers a brief, when several can, and who can't any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from workbench.brief import Brief, Proposal, Usage
from workbench.errors import MisuseError, ModelStopped
from workbench.evolution.calls import Calls, calls_models

EXPERTS_SHARE = 4
"""Beside a model the experts get one in so many of the steps, repairs and crossovers of their own kernels: they cost nothing."""


class AnyProposer(Protocol):
    """What a run needs of a proposer."""

    name: str

    async def propose(self, brief: Brief) -> Proposal: ...


class Writers:
    """Those who write candidates in one run.

    Attributes:
        stopped: who is not asked any more, and why; until the run is taken up again.
        capped: why a model could not be called without passing a cap; that ends the run. Empty otherwise.
    """

    def __init__(self, proposers: Sequence[AnyProposer], calls: Calls, warn: Callable[[str], None]) -> None:
        self.proposers = tuple(proposers)
        self.stopped: dict[str, str] = {}
        self.capped = ""
        self._calls, self._warn = calls, warn

    @property
    def silent(self) -> str:
        """Why nobody is left to write candidates; empty while somebody is, or where nobody ever was."""
        able = [one for one in self.proposers if one.name not in self.stopped]
        return "" if able or not self.stopped else "; ".join(dict.fromkeys(self.stopped.values()))

    def go_on(self) -> None:
        """What was wrong may be mended: everybody is asked again."""
        self.stopped.clear()
        self.capped = ""

    async def propose(self, brief: Brief) -> Proposal:
        """The first answer with a candidate.

        An exception of a proposer is an answer without a candidate: the reason says what happened. What all of them cost is the
        answer's usage. A model whose endpoint refuses, or whose every attempt failed, is not asked any more.
        """
        reasons: list[str] = []
        others = Usage()
        for proposer in order([one for one in self.proposers if one.name not in self.stopped], brief):
            try:
                answer = await proposer.propose(brief)
            except asyncio.CancelledError:
                if not _tokens(self._calls.usage(brief.id)):
                    raise
                answer = Proposal(brief.id, None, "cancelled")  # what was paid is put on the record
                reasons.clear()
            except ModelStopped as stop:
                usage = stop.usage if isinstance(stop.usage, Usage) else Usage()
                answer = Proposal(brief.id, None, str(stop), usage)
                self._stop(proposer.name, stop)
            except Exception as error:  # whatever a proposer does, the run goes on
                first = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
                answer = Proposal(brief.id, None, f"{type(error).__name__}: {first}")
            if not calls_models(proposer):  # the calls of the others are counted where they are kept
                others = _sum(others, answer.usage)
            paid = _sum(others, self._calls.usage(brief.id))
            if answer.candidate is not None:
                return Proposal(brief.id, answer.candidate, answer.reason, paid)
            reasons.append(f"{proposer.name}: {answer.reason or 'no candidate'}")
            if answer.reason == "cancelled" or self.capped:
                break
        paid = _sum(others, self._calls.usage(brief.id))
        return Proposal(brief.id, None, "; ".join(reasons) or "there is no proposer", paid)

    def _stop(self, name: str, stop: ModelStopped) -> None:
        if stop.kind == "budget":
            self.capped = self.capped or str(stop)
        elif name not in self.stopped:
            self.stopped[name] = str(stop)
            self._warn(f"{name} is not asked any more: {stop}")


def order(proposers: Sequence[AnyProposer], brief: Brief) -> list[AnyProposer]:
    """Who is asked first, decided by the brief alone.

    An expert's seed goes to the experts. Steps, repairs and crossovers go to a model where there is one, but for the experts' share. Among
    equals they go round, and the person is asked last.
    """
    first = int(brief.id[1:]) % len(proposers) if proposers else 0
    turns = [*proposers[first:], *proposers[:first]]
    modelled = any(calls_models(one) for one in proposers)
    own = bool(brief.parents) and all(parent.candidate.recipe for parent in brief.parents)
    to_experts = bool(brief.expert) or not modelled or (own and brief.seed % EXPERTS_SHARE == 0)

    def rank(one: AnyProposer) -> tuple[bool, bool]:
        if brief.expert or modelled:
            return one.name == "person", (one.name == "experts") != to_experts
        return one.name == "person", False

    return sorted(turns, key=rank)


def _tokens(usage: Usage) -> int:
    return usage.tokens_in + usage.tokens_out


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        tokens_in=one.tokens_in + other.tokens_in, tokens_out=one.tokens_out + other.tokens_out, money=one.money + other.money,
        estimated=one.estimated or other.estimated,
    )  # fmt: skip


def make_proposers(names: Sequence[str], seed: int = 0) -> tuple[tuple[AnyProposer, ...], tuple[str, ...]]:
    """Proposers by the names under which a run keeps them, and the names that can't be made without more than a name.

    Raises:
        MisuseError: a model's prices can't be read, or the packages for models are not there.
    """
    made: list[Any] = []
    missing = []
    for name in names:
        if name == "experts":
            from workbench.proposers.experts import ExpertProposer

            made.append(ExpertProposer())
        elif name == "person":
            from workbench.proposers.person import PersonProposer

            made.append(PersonProposer())
        elif name.startswith("llm:"):
            made.append(_model(name.removeprefix("llm:"), seed))
        else:
            missing.append(name)
    return tuple(made), tuple(missing)


def _model(models: str, seed: int) -> Any:
    try:
        from workbench.proposers.llm import LlmProposer

        return LlmProposer(models, seed=seed)
    except ImportError as error:
        raise MisuseError(f"a language model needs the package {error.name}: install it, or use the experts") from None

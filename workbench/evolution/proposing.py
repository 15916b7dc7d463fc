"""Who answers a brief, when several can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from workbench.brief import Brief, Proposal, Usage


class AnyProposer(Protocol):
    """What a run needs of a proposer."""

    name: str

    async def propose(self, brief: Brief) -> Proposal: ...


async def propose(proposers: Sequence[AnyProposer], brief: Brief) -> Proposal:
    """The first answer with a candidate. An expert's seed goes to the experts first; other briefs go round, to the person last.

    An exception of a proposer is an answer without a candidate: the reason says what happened. What the unlucky ones cost is added
    to the answer's usage.
    """
    reasons, paid = [], Usage()
    for proposer in _order(proposers, brief):
        try:
            answer = await proposer.propose(brief)
        except Exception as error:  # whatever a proposer does, the run goes on
            first = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
            answer = Proposal(brief=brief.id, candidate=None, reason=f"{type(error).__name__}: {first}")
        paid = _sum(paid, answer.usage)
        if answer.candidate is not None:
            return Proposal(brief=brief.id, candidate=answer.candidate, reason=answer.reason, usage=paid)
        reasons.append(f"{proposer.name}: {answer.reason or 'no candidate'}")
    return Proposal(brief=brief.id, candidate=None, reason="; ".join(reasons) or "there is no proposer", usage=paid)


def _order(proposers: Sequence[AnyProposer], brief: Brief) -> list[AnyProposer]:
    first = int(brief.id[1:]) % len(proposers) if proposers else 0
    order = [*proposers[first:], *proposers[:first]]
    return sorted(order, key=lambda one: (one.name == "person", bool(brief.expert) and one.name != "experts"))


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        tokens_in=one.tokens_in + other.tokens_in, tokens_out=one.tokens_out + other.tokens_out, money=one.money + other.money,
        estimated=one.estimated or other.estimated,
    )  # fmt: skip


def make_proposers(names: Sequence[str]) -> tuple[tuple[AnyProposer, ...], tuple[str, ...]]:
    """Proposers by the names under which a run keeps them, and the names that can't be made without more than a name."""
    made: list[Any] = []
    missing = []
    for name in names:
        if name == "experts":
            from workbench.proposers.experts import ExpertProposer

            made.append(ExpertProposer())
        elif name == "person":
            from workbench.proposers.person import PersonProposer

            made.append(PersonProposer())
        else:
            missing.append(name)
    return tuple(made), tuple(missing)

"""What every proposer promises: one brief in, one proposal out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from workbench.brief import Brief, Proposal


@runtime_checkable
class Proposer(Protocol):
    """Writes candidates.

    `propose` may take its time and may be cancelled; it never judges, and never raises for a brief that it can't answer: that is a
    `Proposal` without a candidate, with the reason in one line. Several briefs may be open at once.

    Attributes:
        name: ``experts``, ``llm``, ``person``, ``recording``, or a name of the user's own; it stands in the candidates.
    """

    name: str

    async def propose(self, brief: Brief) -> Proposal: ...


def nothing(brief: Brief, reason: str) -> Proposal:
    """The answer to a brief that can't be answered."""
    return Proposal(brief=brief.id, candidate=None, reason=reason)

"""A search rebuilt from the events of its run: the same calls in the same order give the same search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.brief import Brief, Budget
from workbench.errors import StoreError
from workbench.events import Acted, Asked, Evaluated, Prepared, Proposed, RunStarted, Spent, Stamped, Submitted
from workbench.knowledge import inductor
from workbench.proposers.recording import MODELS_ALONE
from workbench.records import digest
from workbench.search import Mechanisms, Search


@dataclass(frozen=True)
class Replayed:
    """The search as it stood at the run's last event, and how many steps are still to be taken: endless where it ran by itself."""

    search: Search
    steps: float


def make_search(started: RunStarted) -> Search:
    """The search of a run that has just been started."""
    return Search(
        started.task, experts=started.experts, budget=started.budget, seed=started.seed, elites=started.elites,
        mechanisms=Mechanisms.of(started.mechanisms),
        seeding=_seeds(started.proposers), proposing=bool(started.experts) or any(name != "experts" for name in started.proposers),
    )  # fmt: skip


def take_prepared(search: Search, prepared: Prepared) -> None:
    """What the judge found before the first candidate: the floor, and what Inductor makes of the op."""
    search.floor_us = prepared.floor_us
    if prepared.inductor:
        search.offer(prepared.inductor, inductor.PROPOSER, inductor.PLAN)


def _seeds(proposers: Sequence[str]) -> bool:
    """Whether experts write seeds. Beside models alone they are only shown to them."""
    return "experts" in proposers or not any(name.startswith(("llm:", MODELS_ALONE)) for name in proposers)


def replay(events: Sequence[Stamped]) -> Replayed:
    """Asks, receives and tells again what the events say.

    Raises:
        StoreError: the search of this version decides otherwise than the one that made the run.
    """
    first = events[0].event
    if not isinstance(first, RunStarted):
        raise StoreError(f"run {events[0].run} does not begin with its start: it can't be gone on with")
    search, auto, begun = make_search(first), False, False
    for stamped in events:
        match stamped.event:
            case Asked(brief=stored):
                brief, begun = search.ask(again=stored), True
                if brief is None or _gist(brief) != _gist(stored):
                    raise StoreError(
                        f"run {stamped.run} was made by a version that searches otherwise (from {stored.id} on): "
                        "look at it here, and start a new run to go on"
                    )
                if brief.kind == "tune":
                    given = search.given(brief)
                    assert given is not None
                    search.receive(given)
            case Proposed(proposal=proposal):
                search.receive(proposal)
                if proposal.candidate is None:
                    search.tell(proposal)
            case Evaluated(brief=name, evaluation=evaluation, diagnosis=diagnosis):
                received = search.received(name)
                if received is None:
                    raise StoreError(f"run {stamped.run}: {name} was evaluated before it was answered; the store is damaged")
                search.tell(received, evaluation, diagnosis)
            case Spent(spent=spent):
                search.charge(Budget(seconds=max((spent.seconds or 0.0) - (search.spent.seconds or 0.0), 0.0)))
            case Prepared() as prepared:
                take_prepared(search, prepared)
            case Submitted(candidate=one):
                search.submit(one.source, one.backend, parent=one.parents[0] if one.parents else "", plan=one.plan)
            case Acted(verb=verb, argument=argument):
                auto = {"auto": True, "step": False}.get(verb, auto)
                _act(search, verb, argument)
    # The first seed is judged without being asked for; later on the person says when.
    return Replayed(search, float("inf") if auto else float(search.wishes) if begun else 1.0)


def _gist(brief: Brief) -> tuple[object, ...]:
    """What two searches must agree on: not the wording, and not the clock."""
    parents = tuple(parent.candidate.id for parent in brief.parents)
    return brief.kind, brief.candidate, brief.island.name, parents, digest(brief.parameters), digest(brief.expert)


def _act(search: Search, verb: str, argument: str) -> None:
    if verb == "hint":
        search.hint(argument)
    elif verb == "ban":
        search.ban(argument)
    elif verb == "pin":
        search.pin(argument)
    elif verb == "branch":
        search.branch(argument)
    elif verb == "reopen":
        search.reopen()

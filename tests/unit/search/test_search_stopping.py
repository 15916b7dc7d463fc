"""Why a run stops: budget, floor, plateau; and never past a cap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_world import TASK, describe, drive, judge, propose

from workbench.brief import Budget, Usage
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.events import Noted
from workbench.search import ROLES, Mechanisms, Search


def make(**more) -> Search:
    return Search(TASK, **({"mechanisms": Mechanisms(islands=True), "experts": ("a",), "describe": describe, "patience": 1000} | more))


@pytest.mark.parametrize("cap", [0, 1, 2, 7])
@pytest.mark.parametrize("lanes", [1, 3, 10])
def test_asks_in_flight_count_against_the_cap(cap, lanes):
    search = make(budget=Budget(evaluations=cap))
    evaluations, flight = 0, []
    while not search.finished:
        while len(flight) < lanes and (brief := search.ask()):
            flight.append(brief)
        assert evaluations + len(flight) <= cap
        if not flight:
            break
        proposal = search.receive(propose(flight.pop(0)))
        search.tell(proposal, judge(proposal.candidate))
        evaluations += 1
    assert evaluations == cap
    assert search.finished == f"budget: {cap} of {cap} evaluations are used"
    assert search.ask() is None


def test_a_cap_in_flight_does_not_finish_the_run_and_a_failed_proposal_gives_its_place_back():
    search = make(budget=Budget(evaluations=1))
    brief = search.ask()
    assert search.ask() is None
    assert search.finished is None
    from search_world import nothing

    search.tell(nothing(brief))
    assert search.finished is None
    assert search.ask() is not None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 400), st.integers(1, 5), st.lists(st.integers(1, 40), min_size=5, max_size=5))
def test_tokens_are_never_passed_once_the_price_of_a_call_is_known(cap, lanes, prices):
    search = make(budget=Budget(tokens=cap, evaluations=60))
    dearest, flight = 0, []
    while True:
        while len(flight) < lanes and (brief := search.ask()):
            assert search.spent.tokens + dearest * (len(flight) + 1) <= cap
            flight.append(brief)
        if not flight:
            break
        brief = flight.pop(0)
        price = prices[int(brief.id[1:]) % 5]
        given_one = search.given(brief)
        raw = given_one or propose(brief)
        proposal = search.receive(raw.__class__(raw.brief, raw.candidate, usage=Usage() if given_one else Usage(tokens_in=price)))
        dearest = max(dearest, price)
        search.tell(proposal, judge(proposal.candidate, brief.parameters))
    assert search.finished


@pytest.mark.parametrize(
    ("budget", "words"), [(Budget(money=0.0), "0 of 0 USD"), (Budget(gpu_seconds=3), "GPU seconds"), (Budget(tokens=20), "tokens")]
)
def test_each_cap_stops_and_says_which(budget, words):
    def answer(brief):
        return propose(brief)

    search = make(budget=budget)
    for _ in range(50):
        brief = search.ask()
        if brief is None:
            break
        proposal = search.receive(search.given(brief) or answer(brief))
        time = Timing(9, 9, 9, 9, 9)
        found = Evaluation(
            f"{brief.candidate}.0", brief.candidate, TASK.id, Verdict.RIGHT, timing=time, judged_by="gpu", stage_ms={"run": 1000.0}
        )
        search.tell(proposal, found)
    assert search.finished.startswith("budget") and words in search.finished
    assert (search.spent.gpu_seconds or 0) <= 3


def test_seconds_are_charged_by_the_driver_and_finish_even_with_asks_in_flight():
    search = make(budget=Budget(seconds=10))
    assert search.ask().left.seconds == 10
    search.charge(Budget(seconds=9.5))
    assert search.finished is None
    search.charge(Budget(seconds=0.5))
    assert search.finished == "budget: 10 of 10 seconds are used"


def test_what_is_left_is_in_the_brief():
    search = make(budget=Budget(evaluations=5, tokens=1000))
    assert search.ask().left == Budget(evaluations=5, tokens=1000)
    assert search.ask().left.evaluations == 4


def test_the_floor_stops_at_once():
    search = make(budget=Budget(evaluations=200), floor_us=20.0)
    log = drive(search)
    assert search.finished.startswith("floor: ")
    assert search.best.evaluation.time_us <= 20.0 / 0.95
    assert all(found.time_us is None or found.time_us > 20.0 / 0.95 for *_, found, _ in log[:-1])


def test_a_plateau_changes_roles_then_the_ancestor_then_stops_with_the_price_of_the_last_gain():
    # Nothing ever beats the first candidate by one percent.
    def answer(brief):
        raw = propose(brief, gain=0)
        return raw.__class__(brief.id, Candidate("?", "triton", f"# design=3 bug=0\n# {brief.id}\n", "?"), usage=raw.usage)

    search = make(budget=Budget(), patience=8)
    log = drive(search, answer)
    notes = [(place, event.message) for place, (*_, events) in enumerate(log) for event in events if isinstance(event, Noted)]
    assert [place for place, _ in notes] == [8, 16]
    assert "neighbour's role" in notes[0][1] and "other elites" in notes[1][1]
    assert search.finished == (
        "plateau: 24 evaluations without a gain, other roles and other ancestors included; "
        "the last gain, to 250.00 µs by k1, cost 1 evaluation and 15 tokens"
    )
    first = next(role for role in ROLES if role.name == log[9][0].island.name)
    assert log[9][0].island.aim != first.aim
    best = search.best.candidate.id
    assert not any(best in proposal.candidate.parents for brief, proposal, *_ in log[17:] if brief.kind == "step")
    search.reopen()
    assert search.finished is None and search.ask() is not None


def test_a_gain_during_the_plateau_starts_patience_anew():
    def answer(brief):
        raw = propose(brief, gain=0)
        design = 4 if brief.id == "b12" else 3
        return raw.__class__(brief.id, Candidate("?", "triton", f"# design={design} bug=0\n# {brief.id}\n", "?"))

    search = make(budget=Budget(), patience=8)
    assert len(drive(search, answer)) == 12 + 24


def test_many_small_gains_add_up_to_one():
    from workbench.search.plateau import Plateau

    plateau, time = Plateau(patience=4), 100.0
    for _ in range(40):
        time *= 0.996
        plateau.told(time, "k", Budget(evaluations=1, tokens=0))
    assert not plateau.verdict

"""Islands: seeds spread over them, their shares, children at home, migration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_world import TASK, describe, diagnose, drive, judge, nothing, propose, source_of

from workbench.brief import Budget
from workbench.candidate import Candidate
from workbench.events import Migrated
from workbench.search import ROLES, Mechanisms, Search


def make(**more) -> Search:
    mechanisms = Mechanisms(islands=True, migration=True)
    given = {"mechanisms": mechanisms, "experts": ("a", "b"), "describe": describe, "budget": Budget(evaluations=60)}
    return Search(TASK, **(given | more))


def test_four_roles_by_default_each_with_an_aim_and_hints():
    assert [role.name for role in ROLES] == [
        "fusion and launches", "memory traffic and layout", "tiles and parameters", "instructions and algorithm",
    ]  # fmt: skip
    assert all(role.aim and role.hints for role in ROLES)


@pytest.mark.parametrize(
    ("experts", "asked"),
    [
        (("a",), ["a", "a", "a", "a"]),
        (("a", "b"), ["a", "b", "a", "b"]),
        (("a", "b", "c", "d", "e"), ["a", "b", "c", "d", "e"]),
    ],
)
def test_expert_seeds_come_first_and_spread_over_the_islands(experts, asked):
    log = drive(make(experts=experts), steps=30)
    seeds = [(brief.expert["expert"], brief.island.name) for brief, *_ in log if brief.kind == "seed"]
    assert [name for name, _ in seeds] == asked
    assert [island for _, island in seeds[:4]] == [role.name for role in ROLES]
    assert all(brief.experts == experts for brief, *_ in log)


def test_without_an_expert_every_island_gets_an_open_seed():
    log = drive(make(experts=()), steps=4)
    assert [(brief.kind, dict(brief.expert)) for brief, *_ in log] == [("seed", {})] * 4
    assert len({brief.island.name for brief, *_ in log}) == 4


def test_elites_of_an_earlier_run_are_judged_again_first():
    elites = tuple(Candidate(f"k{n}", "triton", source_of(n), "double", island=ROLES[2].name) for n in (7, 9))
    log = drive(make(elites=elites), steps=3)
    assert [proposal.candidate.source for _, proposal, *_ in log[:2]] == [source_of(7), source_of(9)]
    assert {proposal.candidate.island for _, proposal, *_ in log[:2]} == {ROLES[2].name}
    assert [brief.candidate for brief, *_ in log] == ["k1", "k2", "k3"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.lists(st.integers(0, 2), min_size=12, max_size=50))
def test_every_island_gets_its_share_and_children_live_with_their_parents(seed, lanes, bugs):
    search = make(seed=seed, budget=Budget(evaluations=len(bugs)))
    homes: dict[str, set[str]] = {}
    flight, number = [], 0
    while True:
        while len(flight) < lanes and (brief := search.ask()):
            flight.append(brief)
        if not flight:
            break
        brief = flight.pop(0)
        proposal = search.receive(search.given(brief) or propose(brief, bug=bugs[number % len(bugs)], tune="TUNE = {'BLOCK': [64, 256]}"))
        number += 1
        assert proposal.candidate is not None
        for parent in proposal.candidate.parents[:1]:
            assert proposal.candidate.island in homes[parent]
        found = judge(proposal.candidate, brief.parameters)
        if brief.kind != "tune":
            homes[proposal.candidate.id] = {proposal.candidate.island}
        for event in search.tell(proposal, found, diagnose(found)):
            if isinstance(event, Migrated):
                homes[event.candidate].add(event.to)
        turns = [island.asked for island in search.islands]
        assert max(turns) - min(turns) <= lanes
    assert search.finished
    assert search.spent.evaluations == len(bugs)


def test_a_stale_island_takes_in_an_elite_and_says_so():
    # The first island finds a fast design at once; the others never get anywhere.
    def answer(brief):
        fast = brief.island.name == ROLES[0].name and brief.kind == "seed"
        proposal = propose(brief, gain=0)
        return proposal.__class__(brief.id, Candidate("?", "triton", source_of(50 if fast else 1) + f"#{brief.id}", "?"))

    search = make(patience=1000)
    log = drive(search, answer)
    moves = [(place, event) for place, (*_, events) in enumerate(log) for event in events if isinstance(event, Migrated)]
    assert {event.to for _, event in moves} == {role.name for role in ROLES[1:]}
    assert {(event.candidate, event.source) for _, event in moves} == {("k1", ROLES[0].name)}
    assert min(place for place, _ in moves) >= 4 * 6  # after six answers on an island, not before
    after = moves[0][0]
    assert any("k1" in proposal.candidate.parents and brief.island.name == moves[0][1].to for brief, proposal, *_ in log[after:])


def test_an_island_whose_proposer_has_nothing_gets_an_elite_then_rests_and_all_tired_ends_the_run():
    def answer(brief):
        return propose(brief) if brief.kind == "seed" and brief.id == "b1" else nothing(brief, "no recipe is left")

    search = make(budget=Budget())
    log = drive(search, answer)
    assert search.finished == "nothing new: no recipe is left"
    assert {event.to for *_, events in log for event in events if isinstance(event, Migrated)} == {role.name for role in ROLES[1:]}
    assert len(log) < 40
    search.hint("try split-K")  # something new: they are asked again
    assert search.finished is None
    assert search.ask().hints == ("try split-K",)

"""What the person can do: hint, ban, pin, branch, submit."""

from __future__ import annotations

import pytest
from search_world import TASK, describe, drive, source_of

from workbench.brief import Budget
from workbench.errors import MisuseError, NoSuchCandidateError
from workbench.events import Migrated
from workbench.search import ROLES, Mechanisms, Search


def make(**more) -> Search:
    return Search(
        TASK, **({"mechanisms": Mechanisms(islands=True), "experts": ("a",), "describe": describe, "budget": Budget(evaluations=60)} | more)
    )


def test_hints_and_bans_are_in_every_later_brief():
    search = make()
    drive(search, steps=2)
    search.hint("try split-K")
    search.ban("no atomics")
    later = [brief for brief, *_ in drive(search, steps=6)]
    assert all(brief.hints == ("try split-K",) and brief.bans == ("no atomics",) for brief in later)


def test_a_hint_for_one_island_is_heard_on_that_one_alone():
    search = make(patience=1000)
    search.hint(f"on {ROLES[1].name}: two rows")
    search.hint("on each row: one pass")  # no island is called so: it is for all
    later = [brief for brief, *_ in drive(search, steps=16)]
    assert {brief.island.name for brief in later} == {role.name for role in ROLES}
    for brief in later:
        own = ("two rows",) if brief.island.name == ROLES[1].name else ()
        assert brief.hints == (*own, "on each row: one pass")


def test_a_pin_brings_the_candidate_to_every_island_and_every_step_starts_from_it():
    search = make(patience=1000)
    drive(search, steps=12)
    moves = search.pin("k2")
    assert [(move.candidate, move.source) for move in moves] == [("k2", ROLES[1].name)] * 3
    assert all(isinstance(move, Migrated) for move in moves)
    later = drive(search, steps=8)
    assert {brief.parents[0].candidate.id for brief, *_ in later} == {"k2"}
    assert {brief.island.name for brief, *_ in later} == {role.name for role in ROLES}
    search.pin("")
    assert {brief.parents[0].candidate.id for brief, *_ in drive(search, steps=12)} != {"k2"}


def test_a_branch_is_one_step_from_that_candidate_on_its_own_island():
    search = make()
    drive(search, steps=10)
    turns = [island.asked for island in search.islands]
    search.branch("k3")
    (brief, proposal, *_), (after, *_) = drive(search, steps=2)
    assert (brief.kind, brief.parents[0].candidate.id) == ("step", "k3")
    assert proposal.candidate.island == ROLES[2].name
    assert sum(island.asked for island in search.islands) == sum(turns) + 1  # the branch took nobody's turn
    assert after.parents[0].candidate.id != "k3" or after.island.name != ROLES[2].name


def test_a_submitted_variant_is_judged_next_and_bears_its_lineage():
    search = make()
    drive(search, steps=6)
    mine = search.submit(source_of(40), parent="k2", plan="my own idea")
    (brief, proposal, found, _events), *_ = drive(search, steps=1)
    assert brief.kind == "person"
    assert (proposal.candidate.id, proposal.candidate.proposer, proposal.candidate.parents) == (mine.id, "person", ("k2",))
    assert proposal.candidate.island == ROLES[1].name
    assert proposal.candidate.plan == "my own idea"
    assert found.candidate == mine.id
    assert search.best.candidate.id == mine.id


def test_misuse_is_one_line():
    search = make()
    log = drive(search, steps=2)
    with pytest.raises(NoSuchCandidateError, match="k99"):
        search.pin("k99")
    with pytest.raises(NoSuchCandidateError, match="k99"):
        search.branch("k99")
    with pytest.raises(MisuseError, match="this is the source of k1"):
        search.submit(log[0][1].candidate.source)


def test_a_submission_counts_against_the_cap():
    search = make(budget=Budget(evaluations=2))
    search.submit(source_of(1))
    search.submit(source_of(2))
    search.submit(source_of(3))
    assert len(drive(search)) == 2


def test_no_expert_and_nobody_to_ask_ends_at_once_but_a_submission_wakes_it():
    search = make(experts=())
    from search_world import nothing

    drive(search, nothing)
    assert search.finished.startswith("nothing new")
    search.submit(source_of(5))
    assert search.finished is None
    assert len(drive(search, nothing, steps=1)) == 1


def test_what_the_person_hands_in_is_judged_in_the_order_of_handing_in():
    search = make()
    drive(search, steps=2)
    handed = [search.submit(f"def f(x):\n    return x * {number}\n").id for number in range(3)]
    assert [search.ask().candidate for _ in range(3)] == handed

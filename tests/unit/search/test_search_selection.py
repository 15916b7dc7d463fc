"""Selection, repair chains, crossover, duplicates."""

from __future__ import annotations

import random
from collections import Counter

from search_world import TASK, describe, drive, judge, propose, source_of

from workbench.brief import Budget, Proposal
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.search import Mechanisms, Search
from workbench.search.members import Member
from workbench.search.selection import pick_elites, pick_parent, pick_repair


def make(**more) -> Search:
    return Search(
        TASK, **({"mechanisms": Mechanisms(islands=True), "experts": ("a",), "describe": describe, "budget": Budget(evaluations=60)} | more)
    )


def member(number: int, time: float | None, strategy: tuple[str, ...] = (), verdict=Verdict.RIGHT, matched=None) -> Member:
    timing = None if time is None else Timing(time, time, time, time, time)
    found = Evaluation(f"k{number}.0", f"k{number}", "t", verdict, timing=timing, matched=matched)
    candidate = Candidate(f"k{number}", "triton", f"# {number}\n", "f")
    return Member(number, candidate, found, None, strategy, repairs=0, plan="")


def test_a_different_strategy_beats_a_twin_that_is_a_little_faster():
    twins = [member(number, 100 + number, ("looped", "tile 64")) for number in range(6)]
    stranger = member(9, 130, ("one pass", "tile 1024"))
    far = member(10, 400, ("split", "tile 8"))
    elites = pick_elites([*twins, stranger, far], count=3)
    assert [one.id for one in elites] == ["k0", "k9", "k1"]
    assert [one.id for one in pick_elites([*twins, stranger, far], count=3, novelty=0)] == ["k0", "k1", "k2"]


def test_only_right_ones_are_elites():
    assert pick_elites([member(1, None, verdict=Verdict.WRONG), member(2, None, verdict=Verdict.LOWER_PRECISION)]) == ()


def test_parents_are_mostly_the_fastest_and_sometimes_another():
    elites = [member(number, 100 + number) for number in range(4)]
    picks = Counter(pick_parent(elites, random.Random(seed)).id for seed in range(1000))
    assert 550 < picks["k0"] < 650
    assert picks["k1"] > picks["k2"] > picks["k3"] > 0


def test_failing_candidates_are_ranked_by_how_far_they_came():
    order = [
        member(1, None, verdict=Verdict.LOWER_PRECISION), member(2, None, verdict=Verdict.WRONG, matched=0.99),
        member(3, None, verdict=Verdict.WRONG, matched=0.2), member(4, None, verdict=Verdict.CRASHED),
        member(5, None, verdict=Verdict.DOES_NOT_BUILD), member(6, None, verdict=Verdict.REFUSED),
    ]  # fmt: skip
    shuffled = random.Random(1).sample(order, len(order))
    assert [one.id for one in sorted(shuffled, key=lambda one: one.order)] == [one.id for one in order]
    assert pick_repair(shuffled).id == "k1"


def test_a_failing_candidate_is_repaired_and_its_plan_is_held():
    search = make(mechanisms=Mechanisms(islands=True, odds=False))
    log = drive(search, lambda brief: propose(brief, bug=2 if brief.id == "b1" else 0), steps=12)
    chain = [(brief, proposal) for brief, proposal, *_ in log if brief.kind == "repair"]
    assert [proposal.candidate.parents for _, proposal in chain] == [("k1",), (chain[0][1].candidate.id,)]
    assert [proposal.candidate.plan for _, proposal in chain] == [
        f"plan of b1 – repair {n}: plan of {brief.id}" for n, (brief, _) in enumerate(chain, 1)
    ]
    assert "mend mismatch of k1" in chain[0][0].directive
    assert "plan of b1" in chain[0][0].directive
    assert log[-1][2].verdict is Verdict.RIGHT


def test_a_repair_chain_ends_after_three_links_and_novelty_follows():
    search = make()
    log = drive(search, lambda brief: propose(brief, bug=9), steps=60)
    by_id = {proposal.candidate.id: (brief, proposal.candidate) for brief, proposal, *_ in log}

    def links(name):
        brief, candidate = by_id[name]
        return 1 + links(candidate.parents[0]) if brief.kind == "repair" else 0

    depths = Counter(links(name) for name in by_id)
    assert set(depths) == {0, 1, 2, 3}
    assert any(brief.kind == "seed" and not brief.expert for brief, *_ in log)
    none = drive(make(repairs=0), lambda brief: propose(brief, bug=9), steps=20)
    assert not any(brief.kind == "repair" for brief, *_ in none)


def test_tampering_and_what_could_not_be_judged_is_not_repaired():
    for verdict in (Verdict.REFUSED, Verdict.NOT_JUDGED, Verdict.TIME_NOT_CONFIRMED):
        search = make()
        brief = search.ask()
        proposal = search.receive(propose(brief))
        search.tell(proposal, Evaluation("k1.0", "k1", TASK.id, verdict))
        assert not search.islands[0].repairs


def test_crossover_takes_one_parent_from_another_island_and_stays_at_home():
    log = drive(make(budget=Budget(evaluations=120), patience=1000))
    home = {}
    crosses = 0
    for brief, proposal, *_ in log:
        home[proposal.candidate.id] = proposal.candidate.island
        if brief.kind == "crossover":
            crosses += 1
            first, second = (parent.candidate.id for parent in brief.parents)
            assert first != second
            assert brief.island.name != home[second]
            assert proposal.candidate.parents == (first, second)
            assert proposal.candidate.island == brief.island.name
    assert 10 < crosses < 40


def test_the_same_source_is_never_judged_twice():
    search = make(experts=("a", "b"))
    first, second = search.ask(), search.ask()
    source = source_of(3)
    one = search.receive(Proposal(first.id, Candidate("?", "triton", source, "double")))
    two = search.receive(Proposal(second.id, Candidate("?", "triton", source, "double")))
    assert one.candidate is not None
    assert (two.candidate, two.reason) == (None, "the same source as k1")
    assert search.tell(two) == ()
    search.tell(one, judge(one.candidate))
    third = search.ask()
    from workbench.records import digest

    assert digest(source) in third.tried

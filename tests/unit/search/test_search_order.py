"""Ask and tell: the order of calls, and tells applied in ask order."""

from __future__ import annotations

import pytest
from search_world import TASK, describe, diagnose, judge, nothing, propose

from workbench.brief import Budget
from workbench.errors import OrderError
from workbench.records import dumps
from workbench.search import Mechanisms, Search


def make(**more) -> Search:
    return Search(
        TASK,
        **({"mechanisms": Mechanisms(islands=True), "experts": ("a", "b"), "describe": describe, "budget": Budget(evaluations=40)} | more),
    )


def answer(search, brief):
    proposal = search.receive(search.given(brief) or propose(brief))
    return proposal, judge(proposal.candidate, brief.parameters)


def test_a_brief_that_was_never_asked_is_named():
    search = make()
    brief = search.ask()
    search.tell(*answer(search, brief))
    with pytest.raises(OrderError, match="tell: brief 'b9' was never asked"):
        search.tell(nothing(brief).__class__("b9", None))


def test_telling_twice_is_an_error_that_names_the_call():
    search = make()
    proposal, found = answer(search, search.ask())
    search.tell(proposal, found)
    with pytest.raises(OrderError, match="tell: brief b1 was told before"):
        search.tell(proposal, found)


def test_receiving_twice_is_an_error():
    search = make()
    brief = search.ask()
    search.receive(propose(brief))
    with pytest.raises(OrderError, match="receive: brief b1 was answered before"):
        search.receive(propose(brief))


def test_a_candidate_needs_its_evaluation():
    search = make()
    brief = search.ask()
    with pytest.raises(OrderError, match="needs its evaluation"):
        search.tell(search.receive(propose(brief)))
    assert search.open_briefs == (brief,)


def test_an_evaluation_of_another_candidate_is_an_error():
    search = make()
    first, second = search.ask(), search.ask()
    one, _ = answer(search, first)
    _, found = answer(search, second)
    with pytest.raises(OrderError, match="waits for k1, this evaluation is of k2"):
        search.tell(one, found)


def test_an_early_tell_is_held_until_its_turn():
    search = make()
    first, second = search.ask(), search.ask()
    late, early = answer(search, first), answer(search, second)
    assert search.tell(*early) == ()
    assert search.best is None
    events = search.tell(*late)
    assert next(event.candidate for event in events if type(event).__name__ == "BestChanged") == "k1"
    assert {member for island in search.islands for member in island.members} == {"k1", "k2"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_the_order_in_which_answers_arrive_changes_nothing(order):
    def run(order):
        search, briefs = make(), []
        for _ in range(8):
            flight = [brief for brief in (search.ask() for _ in range(3)) if brief]
            answers = [answer(search, brief) for brief in flight]
            for place in order:
                if place < len(answers):
                    search.tell(*answers[place], diagnose(answers[place][1]))
            briefs += flight
        return [dumps(brief) for brief in briefs]

    assert run(order) == run((0, 1, 2))


def test_equal_tells_give_equal_briefs_and_another_seed_gives_others():
    def run(seed):
        from search_world import drive

        return [dumps(brief) for brief, *_ in drive(make(seed=seed, budget=Budget(evaluations=60)))]

    assert run(3) == run(3)
    assert run(3) != run(4)

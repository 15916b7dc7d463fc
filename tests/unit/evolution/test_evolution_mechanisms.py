"""Mechanisms that act around the search: experience, the models' bandit, bans, and what a run keeps of its switches."""

from __future__ import annotations

import pytest
from model_world import KEY, model, writes
from scripted_fleet import ScriptedFleet, ScriptedProposer, diagnose
from server import Server

from workbench import evolution
from workbench.brief import Budget
from workbench.errors import MisuseError
from workbench.events import Asked, Noted, Proposed, RunStarted
from workbench.evolution.lessons import Unkept
from workbench.knowledge.experience import Library
from workbench.proposers.llm import Price
from workbench.search import Mechanisms
from workbench.store import MemoryStore


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def of(run, kind):
    return [stamped.event for stamped in run.events() if isinstance(stamped.event, kind)]


def lessons(run):
    return [event.message for event in of(run, Noted) if event.level == "lesson"]


def test_what_is_learnt_is_an_event_and_failures_become_warnings(begin):
    experience = Unkept(Library(()))
    run, _ = begin(
        proposers=(ScriptedProposer(wrong_every=3),), budget=Budget(evaluations=14), auto=True, experience=experience,
        mechanisms=Mechanisms(islands=True, cards=True).without("repair"),
    )  # fmt: skip
    run.wait(20)
    learnt = experience.library.cards
    assert learnt and any(card.is_negative and card.advice.startswith("did not help: ") for card in learnt)
    said = lessons(run)
    assert all(any(line.startswith(f"experience: {card.id}, learnt from k") for line in said) for card in learnt)
    assert any("did not work" in line for line in said)
    later = [card.id for event in of(run, Asked) for card in event.brief.cards]
    assert set(later) & {card.id for card in learnt}  # the same run is helped by it already
    assert run.header()["notes"] == []  # the header is for what a person has to know


def test_cited_cards_are_reinforced_and_the_event_says_how_far(begin):
    with Server(lambda body: writes(body, 0)) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(evaluations=8), auto=True, lanes=1, experience=Unkept(Library.shipped()))
        run.wait(30)
    cited = [line for line in lessons(run) if "cited by" in line]
    assert cited and all("confidence 0." in line and "as fast" in line for line in cited)


def test_by_default_results_teach_and_briefs_carry_no_cards(begin):
    experience = Unkept(Library.shipped())
    run, _ = begin(
        proposers=(ScriptedProposer(wrong_every=3),), budget=Budget(evaluations=12), auto=True, experience=experience,
        mechanisms=Mechanisms(),
    )  # fmt: skip
    run.wait(20)
    assert not any(event.brief.cards for event in of(run, Asked)) and lessons(run)


def test_without_experience_there_are_no_cards_and_no_lessons(begin):
    experience = Unkept(Library.shipped())
    before = experience.library.cards
    run, _ = begin(
        proposers=(ScriptedProposer(wrong_every=3),), budget=Budget(evaluations=12), auto=True, experience=experience,
        mechanisms=Mechanisms(islands=True, cards=True).without("experience"),
    )  # fmt: skip
    run.wait(20)
    assert not any(event.brief.cards for event in of(run, Asked)) and lessons(run) == [] and experience.library.cards == before


@pytest.mark.parametrize("on", [True, False])
def test_the_bandit_leans_to_the_better_model_and_without_it_they_take_turns(begin, on):
    alike = {"m": Price(1.0, 1.0), "n": Price(1.0, 1.0)}

    def answer(body):  # one model is always wrong, the other always right
        return writes(body, 1 if body["model"] == "m" else 0)

    with Server(answer) as server:
        run, _ = begin(
            proposers=(model(server, ("m", "n"), prices=alike),), budget=Budget(evaluations=24), auto=True, lanes=1,
            mechanisms=Mechanisms(islands=True, cards=True).without(*([] if on else ["bandit"])), experience=Unkept(Library(())),
        )  # fmt: skip
        run.wait(60)
    steps = [call for call in run.calls() if call.purpose == "step"]
    share = sum(call.model == "n" for call in steps) / len(steps)
    assert share > 0.6 if on else abs(share - 0.5) < 0.1
    assert {call.why for call in steps} == {"the models take turns"} or on


def test_a_ban_is_heard_by_the_run_and_what_breaks_it_is_refused_with_an_event(begin):
    class Breaker(ScriptedProposer):
        async def propose(self, brief):
            answer = await super().propose(brief)
            if not brief.bans or int(brief.id[1:]) % 2:
                return answer
            from dataclasses import replace

            return replace(answer, candidate=replace(answer.candidate, source=answer.candidate.source + "tl.atomic_add\n"))

    run, fleet = begin(proposers=(Breaker(),), budget=Budget(evaluations=10))
    run.wait(10)
    run.ban("no atomics").auto().wait(20)
    notes = [event.message for event in of(run, Noted)]
    assert any("refused before it is judged" in line for line in notes)
    refused = [event.proposal for event in of(run, Proposed) if event.proposal.candidate is None]
    assert refused and all("banned (no atomics): line" in proposal.reason for proposal in refused)
    assert len(fleet.judged) == 10 and not any("atomic" in run.candidate(row["id"]).candidate.source for row in run.rows())


def test_a_run_keeps_its_switches_and_goes_on_with_them(begin):
    store = MemoryStore()
    off = Mechanisms(tuner="near").without("islands", "crossover")
    run, _ = begin(store=store, budget=Budget(evaluations=9), mechanisms=off)
    run.step(4).wait(10)
    run.stop().wait(10)
    assert Mechanisms.of(of(run, RunStarted)[0].mechanisms) == off
    again = evolution.open_run(store, run.id, proposers=(ScriptedProposer(),), fleet=ScriptedFleet, diagnose=diagnose)
    again.auto().wait(20)
    again.close()
    assert again.reason == "budget: 9 of 9 evaluations are used"
    assert {event.brief.island.name for event in of(again, Asked)} == {"everything"}


def test_a_mechanism_that_is_not_there_is_misuse():
    with pytest.raises(MisuseError, match="there is no mechanism 'magic'"):
        Mechanisms().without("magic")


def test_the_header_names_every_island_with_its_aim_and_rows_have_their_time_whatever_the_verdict(begin):
    run, _ = begin(budget=Budget(evaluations=6), auto=True)
    run.wait(20)
    islands = {island["name"]: island["aim"] for island in run.header()["islands"]}
    assert islands == {event.brief.island.name: event.brief.island.aim for event in of(run, Asked)} and all(islands.values())
    assert all(row["median_us"] == row["time_us"] for row in run.rows() if row["verdict"] == "right")
    assert run.cell_source == ""

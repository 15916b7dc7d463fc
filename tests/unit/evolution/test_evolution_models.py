"""Models in a run, over a socket: every kind of work, the caps at their boundary, the store of calls, what is live, who writes what."""

from __future__ import annotations

import json

import pytest
from model_world import KEY, TOKENS_OUT, kind, model, reply, tokens_of, writes
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer
from server import Say, Server, usage

from workbench.brief import Budget
from workbench.events import Asked, Ended, Evaluated, Noted, Proposed, Spent, StateChanged
from workbench.evolution import choose_proposers
from workbench.evolution.lessons import Unkept
from workbench.evolution.proposing import order
from workbench.knowledge.experience import Library
from workbench.records import dumps
from workbench.search import Mechanisms
from workbench.store import MemoryStore, Store


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def of(run, kind):
    return [stamped.event for stamped in run.events() if isinstance(stamped.event, kind)]


def kinds(run):
    """What each judged proposal was asked for, by brief."""
    asked = {event.brief.id: event.brief.kind for event in of(run, Asked)}
    return [asked[event.proposal.brief] for event in of(run, Proposed) if event.proposal.candidate is not None]


def test_a_model_writes_seeds_steps_repairs_and_crossovers_and_gets_faster(begin, tmp_path):
    store = Store(tmp_path)
    with Server(writes) as server:
        always = Mechanisms(islands=True, cards=True, odds=False)  # repairs come first, however seldom they are needed
        run, _ = begin(
            store=store, proposers=(model(server),), budget=Budget(evaluations=24), auto=True, lanes=1, seed=2, mechanisms=always
        )  # fmt: skip
        run.wait(40)
    assert run.reason == "budget: 24 of 24 evaluations are used", run.reason
    assert set(kinds(run)) >= {"seed", "step", "repair", "crossover"}
    verdicts = [event.evaluation.verdict.value for event in of(run, Evaluated)]
    assert "wrong" in verdicts and run.best.evaluation.time_us < 100
    repaired = next(event.brief for event in of(run, Asked) if event.brief.kind == "repair")
    assert repaired.parents[0].evaluation.verdict.value == "wrong"
    mended = run.candidate(repaired.candidate)
    assert mended.evaluation.verdict.passes and mended.candidate.parents == (repaired.parents[0].candidate.id,)
    assert all(row["proposer"] == "llm:m" for row in run.rows())

    calls = run.calls()
    assert len(calls) == len(server.requests) == len(of(run, Proposed)) >= 24
    for call, body in zip(calls, server.requests, strict=True):
        assert [message["content"] for message in call.prompt] == [message["content"] for message in body["messages"]]
        assert call.purpose == kind(body) and "```python" in call.reply and call.error == "" and call.why
        assert call.tokens_in == tokens_of(body) and call.money == pytest.approx((call.tokens_in * 2 + TOKENS_OUT * 8) / 1e6)
        assert 0 < call.first_seconds <= call.seconds
    spent, told = run.summary()["spent"], sum(map(tokens_of, server.requests))
    assert spent["tokens"] == told + TOKENS_OUT * len(calls) and spent["money"] == pytest.approx(sum(call.money for call in calls))
    (bill,) = run.summary()["models"]
    assert (bill["model"], bill["calls"], bill["failed"], bill["tokens_in"]) == ("m", len(calls), 0, told)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize(
    "cap", [{"tokens": 11_000}, {"tokens": 14_567}, {"tokens": 500}, {"money": 0.03}, {"money": 0.0442}, {"money": 0.001}]
)
def test_a_cap_is_used_up_to_less_than_one_call_and_never_passed(begin, cap, lanes):
    with Server(lambda body: writes(body, 0)) as server:
        run, _ = begin(proposers=(model(server, max_output=TOKENS_OUT),), budget=Budget(**cap), auto=True, lanes=lanes)
        run.wait(30)
    ((name, most),) = cap.items()
    spent = run.header()["spent"] or {"tokens": 0, "money": 0.0}
    dearest = max(
        (call.tokens if name == "tokens" else call.money for call in run.calls()), default=1.3 * (4000 if name == "tokens" else 0.01)
    )
    assert spent[name] <= most < spent[name] + 1.2 * dearest
    assert spent["tokens"] == sum(call.tokens for call in run.calls()) and len(server.requests) == len(run.calls())
    assert run.state == "ended" and "budget" in run.reason and ("tokens" if name == "tokens" else "USD") in run.reason
    assert isinstance(run.events()[-1].event, Ended)


def test_an_answer_is_capped_lower_where_the_budget_has_no_room_for_more(begin):
    with Server(writes) as server:
        run, _ = begin(proposers=(model(server, max_output=100_000),), budget=Budget(tokens=20_000, evaluations=1), auto=True)
        run.wait(20)
    sent = server.requests[0]["max_tokens"]
    assert len(run.rows()) == 1 and 10_000 < sent < 20_000


def test_what_an_unusable_answer_cost_counts_before_it_is_asked_for_again(begin):
    with Server(lambda body: Say("no code", usage(tokens_of(body), TOKENS_OUT))) as server:
        run, _ = begin(proposers=(model(server, max_output=TOKENS_OUT),), budget=Budget(tokens=6000), auto=True, lanes=1)
        run.wait(20)
    assert len(server.requests) == 1 and "the token budget is used up" in of(run, Proposed)[0].proposal.reason
    spent = run.header()["spent"]["tokens"]
    assert run.reason == f"budget: {spent} of 6000 tokens are used, and one more may take {spent}"
    assert run.header()["spent"]["tokens"] == tokens_of(server.requests[0]) + TOKENS_OUT


def test_no_cap_is_passed_by_answers_in_flight_together(begin):
    with Server(lambda body: Say(reply(2, str(body["seed"])), usage(tokens_of(body), 3000), delay=0.005, chunk=100)) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(tokens=14_000), auto=True, lanes=4)
        run.wait(30)
    assert len(server.requests) == 2 and run.header()["spent"]["tokens"] <= 14_000


def test_an_unknown_price_and_a_money_cap_end_the_run_with_the_mend(begin):
    with Server(writes) as server:
        run, _ = begin(proposers=(model(server, ("mystery",)),), budget=Budget(money=1.0), auto=True)
        run.wait(20)
    assert server.requests == [] and "the price of mystery is not known" in run.reason and "--tokens" in run.reason


def test_experts_write_their_seeds_and_the_model_the_rest_but_for_their_share(begin):
    class Experts(ScriptedProposer):
        async def propose(self, brief):
            answer = await super().propose(brief)
            from dataclasses import replace

            return replace(answer, candidate=replace(answer.candidate, recipe={"expert": "pointwise"}))

    experts = Experts("experts")
    with Server(lambda body: Say(reply(1, str(body["seed"])), usage(tokens_of(body), TOKENS_OUT), chunk=200)) as server:
        run, _ = begin(proposers=(experts, model(server)), budget=Budget(evaluations=24), auto=True, seed=3, lanes=1)
        run.wait(40)
    started = run.events()[0].event
    assert started.proposers == ("experts", "llm:m") and started.experts
    seeds = [event.brief for event in of(run, Asked) if event.brief.expert]
    assert len(seeds) == 4 and {run.candidate(brief.candidate).candidate.proposer for brief in seeds} == {"experts"}
    rest = [row["proposer"] for row in run.rows() if row["kind"] in ("step", "crossover")]
    assert rest.count("llm:m") > len(rest) / 2 and "experts" in rest
    for event in of(run, Proposed):
        brief = next(one.brief for one in of(run, Asked) if one.brief.id == event.proposal.brief)
        if event.proposal.candidate.proposer == "experts" and not brief.expert:
            assert all(parent.candidate.recipe for parent in brief.parents) and order(run.proposers, brief)[0].name == "experts"


def test_a_model_alone_sees_the_experts_but_gets_no_expert_seeds(begin):
    with Server(writes) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(evaluations=3), auto=True)
        run.wait(20)
    assert run.events()[0].event.experts == ("pointwise",)
    assert all(not event.brief.expert and event.brief.experts == ("pointwise",) for event in of(run, Asked))
    assert "Expert `pointwise`" in server.requests[0]["messages"][1]["content"]


def test_answers_are_heard_while_they_are_written_and_nothing_of_it_is_an_event(begin):
    with Server(Say(reply(3), usage(), cut_after=4), lambda body: Say(reply(3), usage(), delay=0.005, chunk=50)) as server:
        run, _ = begin(ScriptedFleet(prepare_seconds=0.5), proposers=(model(server),), budget=Budget(evaluations=1))
        heard, open_then = [], []

        def listen(news):
            heard.append(news)
            open_then.append(run.stream.open())

        run.stream.listen(listen)
        run.wait(20)
    assert [news.what for news in heard if news.what != "text"] == ["begins", "void", "ends"]
    void = next(place for place, news in enumerate(heard) if news.what == "void")
    assert "".join(news.text for news in heard[void:] if news.what == "text") == reply(3)
    assert heard[0].model == "m" and heard[0].why == "the only model"
    assert any(one and one[0].text.startswith("Plan: design 3") and one[0].model == "m" for one in open_then)
    assert run.stream.open() == ()
    assert {stamped.type for stamped in run.events()} <= {
        "RunStarted", "StateChanged", "Prepared", "Asked", "Proposed", "Evaluated", "BestChanged", "Spent", "Ended", "Noted", "Acted",
    }  # fmt: skip


def test_cards_are_in_the_brief_before_it_is_asked_and_cited_ones_are_reinforced(begin):
    experience = Unkept(Library.shipped())
    before = {card.id: card for card in experience.library.cards}
    with Server(lambda body: writes(body, 0)) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(evaluations=8), auto=True, lanes=1, experience=experience)
        run.wait(20)
    asked = of(run, Asked)
    assert all(event.brief.cards for event in asked)
    for event, body in zip(asked, server.requests, strict=True):
        assert event.brief.cards[0].advice.split("\n")[0] in body["messages"][1]["content"]
    cited = {name for event in of(run, Proposed) for name in event.proposal.candidate.cites}
    tried = {card.id for card in experience.library.cards if card.id in before and card.trials > before[card.id].trials}
    assert cited and tried and tried <= cited


def test_the_bandit_hears_what_came_of_each_answer_also_when_the_run_goes_on(begin):
    from workbench import evolution

    def two(body):
        return writes(body, 0) if body["model"] == "n" else Say(reply(-1, str(body["seed"])), usage(tokens_of(body), TOKENS_OUT))

    store = MemoryStore()
    with Server(two) as server:
        first = model(server, ("m", "n"))
        run, _ = begin(store=store, proposers=(first,), budget=Budget(evaluations=20), auto=True, lanes=1)
        run.wait(40)
        learnt = {work: first.bandit.arms(work) for work in ("seed", "step", "repair", "crossover")}
        assert sum(arm.pulls for arms in learnt.values() for arm in arms) == 20
        second = model(server, ("m", "n"))
        again = evolution.open_run(store, run.id, proposers=(second,), fleet=ScriptedFleet)
        again.resume().wait(20)
        again.close()
    for work, arms in learnt.items():
        assert [(arm.model, arm.pulls, pytest.approx(arm.reward)) for arm in second.bandit.arms(work)] == [
            (arm.model, arm.pulls, arm.reward) for arm in arms
        ]


def test_notes_of_the_proposer_are_events(begin):
    with Server(writes) as server:
        run, _ = begin(proposers=(model(server, ("mystery",)),), budget=Budget(evaluations=2), auto=True)
        run.wait(20)
    assert Noted("the price of mystery is not known: its calls are counted in tokens, not in money") in of(run, Noted)
    assert run.summary()["models"][0]["money"] is None


def test_stop_and_cancel_while_a_model_writes(begin):
    with Server(Say(reply(2), usage()), Say(reply(3) * 3, hang_after=5)) as server:
        run, _ = begin(proposers=(model(server),), lanes=1)
        run.wait(20)
        run.step()
        while len(run.stream.open()) == 0 or not run.stream.open()[0].text:
            pass
        run.cancel().wait(10)
        assert server.gone.wait(5)
    assert run.reason == "cancelled by the person"
    last = of(run, Proposed)[-1].proposal
    assert last.candidate is None and "cancelled" in last.reason and last.usage.estimated
    assert run.calls()[-1].error == "cancelled" and run.calls()[-1].reply
    assert run.header()["spent"]["tokens"] == sum(call.tokens for call in run.calls())


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ((None, None), ("experts",)), ((None, "a, b,a"), ("experts", "llm:a,b")), (("llm", "a"), ("llm:a",)),
        (("llm,experts,person", "a"), ("llm:a", "experts", "person")),
    ],
)  # fmt: skip
def test_names_become_proposers(given, names):
    assert choose_proposers(*given) == names


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        (("llm", None), {}, "--proposer llm: name a model"),
        ((None, " , "), {}, "--model: name a model"),
        (("experts", "a"), {}, "--model a: --proposer experts asks no model"),
        (("oracle", "a"), {}, "no proposer 'oracle': there is experts, llm, person"),
        ((None, None), {"tokens": 5}, "--tokens 5: only a model uses tokens"),
        ((None, "a"), {"money": 0.0}, "--money 0.0: give more than 0"),
        ((None, "a"), {"money": float("nan")}, "--money nan: give more than 0"),
        ((None, "a"), {"money": float("inf")}, "--money inf: give more than 0"),
        ((None, "a"), {"money": -1.0}, "--money -1.0: give more than 0"),
        ((None, "a"), {"tokens": float("nan")}, "--tokens nan: give more than 0"),
        ((None, "a"), {"tokens": -5}, "--tokens -5: give more than 0"),
        ((None, "a"), {"environ": {}}, "--model a: set OPENAI_API_KEY in the environment (or OPENAI_BASE_URL"),
    ],
)  # fmt: skip
def test_names_that_do_not_go_together_are_one_line_with_the_mend(given, more, said):
    from workbench.errors import MisuseError

    with pytest.raises(MisuseError) as caught:
        choose_proposers(*given, **more)
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)
    assert choose_proposers(None, "a", environ={"OPENAI_BASE_URL": "http://x"}) == ("experts", "llm:a")


def test_spent_is_told_for_answers_that_brought_no_candidate(begin):
    with Server(lambda body: Say("I would rather not.", usage(3000, 10))) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(tokens=20_000), auto=True, lanes=1)
        run.wait(20)
    spent = [event.spent.tokens for event in of(run, Spent)]
    assert spent and spent[0] == 2 * 3010 and run.header()["spent"]["tokens"] == spent[-1]
    assert [event.state for event in of(run, StateChanged)][-1] == "running" and run.state == "ended"
    assert json.loads(dumps(run.events()[-1].event))["best"] == "" and TASK.name == run.header()["name"]

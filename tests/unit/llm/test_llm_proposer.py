"""The proposer with a scripted model: budget before call, corrections, choice of model, records of calls, replay from stored calls."""

import asyncio
import dataclasses
import subprocess
import sys

import llm_briefs
import pytest

from workbench.brief import Brief, Budget, Proposal
from workbench.errors import MisuseError, ModelStopped
from workbench.proposers.llm import ContextTooLong, LlmProposer, ModelCall, Price, Retry, ScriptedModel, TransientFault
from workbench.proposers.llm.allowance import refusal, worst_case
from workbench.proposers.llm.prices import load_prices, price_of
from workbench.proposers.llm.tokens import count_messages
from workbench.records import digest, dumps, loads

GOOD = f"Plan: hold the row.\nCites: c-evict\n```python\n{llm_briefs.SOURCE}```\n"
OTHER = GOOD.replace("[4, 8, 16]", "[2, 4]")
PRICES = {"m": Price(2.0, 8.0), "n": Price(0.2, 0.8)}


def proposer(script, models=("m",), **more):
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    fields = {"prices": PRICES, "expert_source": llm_briefs.expert_source, "max_output": 1000, "retry": Retry(3, 0.001)}
    return LlmProposer(models, transport=model, **(fields | more)), model


def ask(asked, brief=None, **more):
    return asyncio.run(asked.propose(brief or llm_briefs.brief("step", **more)))


def test_a_script_needs_no_key_and_no_network(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked, model = proposer([GOOD])
    answer = ask(asked)
    assert answer.candidate.source == llm_briefs.SOURCE and answer.candidate.cites == ("c-evict",)
    assert len(model.requests) == 1 and answer.usage.tokens_in == count_messages(model.requests[0].messages)


def test_importing_and_scripting_imports_neither_openai_nor_torch():
    code = (
        "import sys, asyncio; from workbench.proposers.llm import LlmProposer, ScriptedModel; "
        "LlmProposer('m', transport=ScriptedModel(['x'])); "
        "print([name for name in ('openai', 'torch', 'triton', 'jinja2', 'httpx') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.strip() == "[]"


def test_the_budget_is_held_before_the_call():
    for left, said in [
        (Budget(tokens=2500), "the token budget is used up: a call to m may take 4,"),
        (Budget(money=0.01), "the money budget is used up: a call to m may cost 0.01"),
    ]:
        asked, model = proposer([GOOD])
        with pytest.raises(ModelStopped) as caught:
            ask(asked, left=left)
        assert caught.value.kind == "budget" and str(caught.value).startswith(said) and model.requests == []
    assert ask(proposer([GOOD])[0], left=Budget(tokens=5000, money=0.02)).candidate


def test_a_cheaper_model_that_fits_the_money_is_asked_instead():
    asked, model = proposer([GOOD] * 4, ("m", "n"))
    for number in range(4):
        assert ask(asked, left=Budget(money=0.01), id=f"b{number}").candidate
    assert {request.model for request in model.requests} == {"n"}


def test_retries_and_corrections_count_against_the_same_budget():
    asked, model = proposer(["no code here", GOOD])
    with pytest.raises(ModelStopped, match="token budget") as caught:
        ask(asked, left=Budget(tokens=5500))
    assert len(model.requests) == 1 and caught.value.usage.tokens_out > 0


def test_calls_in_flight_are_reserved():
    asked, model = proposer(ScriptedModel([GOOD, GOOD], delay=0.01))

    async def both():
        brief = llm_briefs.brief("step", left=Budget(tokens=5000))
        return await asyncio.gather(asked.propose(brief), asked.propose(brief), return_exceptions=True)

    one, two = asyncio.run(both())
    assert isinstance(one, Proposal) and isinstance(two, ModelStopped) and two.kind == "budget" and len(model.requests) == 1
    assert ask(asked, left=Budget(tokens=5000)).candidate


def test_an_unknown_price_is_said_and_never_guessed():
    notes = []
    asked, _ = proposer([GOOD, OTHER], ("mystery",), on_note=notes.append)
    answer = ask(asked)
    assert answer.usage.money == 0.0 and answer.usage.estimated
    assert notes == ["the price of mystery is not known: its calls are counted in tokens, not in money"]
    with pytest.raises(ModelStopped, match="price of mystery is not known, so a money budget can't be kept"):
        ask(asked, left=Budget(money=5.0))
    assert len(notes) == 1


def test_the_worst_case_is_prompt_and_longest_answer():
    coming = worst_case(3000, 1000, Price(2.0, 8.0))
    assert coming.tokens == 4000 and coming.money == pytest.approx(0.014)
    assert refusal(coming, Budget(tokens=4000, money=0.014 + 1e-9), "m") == ""
    assert refusal(coming, Budget(tokens=4000), "m", tokens=1) and refusal(coming, Budget(money=0.02), "m", money=0.01)
    assert refusal(coming, Budget(), "m", tokens=10**9) == ""


def test_an_answer_that_can_not_be_used_is_asked_for_again_with_what_was_wrong():
    calls = []
    asked, model = proposer(["I would split the row.", GOOD], on_call=calls.append)
    answer = ask(asked)
    assert answer.candidate and "could not be used: the reply holds no code" in model.requests[1].messages[1].content
    assert model.requests[0].messages[0] == model.requests[1].messages[0]
    assert [call.purpose for call in calls] == ["step", "correction"]
    assert answer.usage.tokens_in == sum(call.tokens_in for call in calls)


def test_after_the_last_correction_the_reason_is_given_and_the_cost_too():
    answer = ask(proposer(["nothing", "nothing again"])[0])
    assert answer.candidate is None and answer.reason.startswith("m: the reply holds no code") and answer.usage.tokens_out > 0
    answer = ask(proposer(["nothing"], corrections=0)[0])
    assert answer.candidate is None


def test_a_source_that_was_tried_is_a_waste():
    asked, model = proposer([GOOD, OTHER])
    answer = ask(asked, tried=(digest(llm_briefs.SOURCE),))
    assert '"WARPS": [2, 4]' in answer.candidate.source and "tried already" in model.requests[1].messages[1].content


def test_an_answer_cut_at_its_cap_gets_twice_the_room():
    cut = ScriptedModel([])
    asked, model = proposer(cut)
    import workbench.proposers.llm.calls as calls

    async def stream(request):
        cut.requests.append(request)
        whole = request.max_tokens > 1000
        yield calls.Delta(GOOD if whole else GOOD[:400])
        yield calls.Delta(finish="stop" if whole else "length", tokens_in=2500, tokens_out=500)

    cut.stream = stream
    assert ask(asked).candidate and [request.max_tokens for request in model.requests] == [1000, 2000]


def test_what_no_model_answers_says_so():
    for kind in ("tune", "person"):
        answer = ask(proposer([])[0], llm_briefs.brief(kind))
        assert answer.candidate is None and kind in answer.reason


def test_every_attempt_is_recorded_and_the_record_is_json():
    calls = []
    asked, _ = proposer([TransientFault("busy", 0.001), GOOD], on_call=calls.append)
    answer = ask(asked)
    assert [(call.attempt, call.error) for call in calls] == [(1, "busy"), (2, "")]
    assert all(loads(ModelCall, dumps(call)) == call for call in calls)
    assert calls[1].request.messages[1].content.startswith("# Task: rms_norm") and calls[1].reply == GOOD
    assert calls[1].money == pytest.approx(answer.usage.money)


def test_a_stored_call_answers_the_same_request_without_a_call():
    calls, heard = [], []
    first, _ = proposer([GOOD], on_call=calls.append)
    before = ask(first)
    stored = {call.request.key: call for call in calls}
    second, model = proposer([], recall=stored.get, on_delta=lambda brief, text: heard.append(text))
    after = ask(second)
    assert after.candidate == before.candidate and model.requests == [] and heard == [GOOD]
    assert after.usage.tokens_in == after.usage.tokens_out == after.usage.money == 0
    with pytest.raises(AssertionError, match="no further answer"):
        ask(second, seed=12)


def test_a_callback_that_fails_ends_the_proposal():
    def full(call):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        ask(proposer([GOOD], on_call=full)[0])


def test_the_bandit_learns_from_what_is_observed_and_from_useless_answers():
    choices = []
    asked, _ = proposer(
        lambda request: GOOD if request.model == "n" else "no", ("m", "n"), on_choice=lambda *choice: choices.append(choice)
    )
    for number in range(30):
        brief = llm_briefs.brief("step", id=f"b{number}")
        answer = ask(asked, brief)
        if answer.candidate:
            faster = dataclasses.replace(llm_briefs.RIGHT, timing=dataclasses.replace(llm_briefs.RIGHT.timing, median_us=12.0))
            asked.observe(brief, answer, faster)
    picked = [choice.model for _, choice in choices if choice.kind == "step"]
    assert picked[-10:].count("n") >= 9 and choices[0][0] == "b0"
    assert next(arm for arm in asked.bandit.arms("step") if arm.model == "n").mean > 0.9


def test_observing_what_others_proposed_teaches_nothing():
    asked, _ = proposer([])
    brief = llm_briefs.brief("step")
    asked.observe(brief, Proposal(brief.id, None, "nothing"), llm_briefs.RIGHT)
    asked.observe(brief, Proposal(brief.id, llm_briefs.candidate(proposer="experts")), llm_briefs.RIGHT)
    assert asked.bandit.arms("step")[0].pulls == 0


def test_context_too_long_for_one_model_only_leaves_the_other():
    def small(request):
        return ContextTooLong("the prompt does not fit the context of m") if request.model == "m" else GOOD

    asked, model = proposer(small, ("m", "n"))
    assert all(ask(asked, id=f"b{n}").candidate for n in range(6)) and {request.model for request in model.requests} == {"m", "n"}


def test_names_are_split_and_an_empty_list_is_misuse():
    asked = LlmProposer(" a, b,a,", prices={}, transport=ScriptedModel([]))
    assert asked.models == ("a", "b") and asked.name == "llm:a,b"
    assert LlmProposer(asked.name.removeprefix("llm:"), prices={}).models == asked.models
    with pytest.raises(MisuseError, match="--model"):
        LlmProposer(" , ", prices={})


def test_the_users_price_table_extends_the_shipped_one(tmp_path, monkeypatch):
    mine = tmp_path / "prices.toml"
    mine.write_text('[models."my/model"]\ninput = 1\noutput = 2\n[models."gpt-4o"]\ninput = 9\noutput = 9\n')
    monkeypatch.setenv("WORKBENCH_PRICES", str(mine))
    prices = load_prices()
    assert prices["my/model"] == Price(1.0, 2.0) and prices["gpt-4o"] == Price(9.0, 9.0) and prices["gpt-5-mini"].input > 0
    assert price_of("gpt-5-mini-2025-08-07", prices) == prices["gpt-5-mini"] and price_of("gpt-5-minimal", prices) is None
    for bad, said in [
        ("[models", "can't be read"),
        ('[models."x"]\ninput = 1\n', "bad entry for 'x'"),
        ('[models."x"]\ninput=-1\noutput=1\n', "neg"),
    ]:
        mine.write_text(bad)
        with pytest.raises(MisuseError, match=said) as caught:
            load_prices()
        assert str(mine) in str(caught.value)


def test_a_brief_without_a_parent_or_with_a_models_reference_goes_through():
    model_task = dataclasses.replace(llm_briefs.TASK, format="model", entry="Model")
    reply = GOOD.replace("def rms_norm(x, weight, eps):", "class ModelNew(torch.nn.Module):\n  def forward(self, x, weight, eps):")
    answer = ask(proposer([reply])[0], llm_briefs.brief("seed", task=model_task))
    assert answer.candidate.entry == "ModelNew" and answer.candidate.parents == ()
    assert isinstance(llm_briefs.brief("seed"), Brief)

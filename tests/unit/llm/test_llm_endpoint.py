"""The real client against a real server on loopback: what comes through, and every fault that endpoints have."""

import asyncio
import json
import logging
import time
from email.utils import format_datetime

import llm_briefs
import pytest
from server import Hang, Refuse, Reset, Say, Server, usage

from workbench.errors import ModelStopped
from workbench.proposers.llm import LlmProposer, Price, Retry, Timeouts

KEY = "sk-planted-secret-0123456789"
GOOD = f"Plan: hold the row in registers.\nCites: rms_norm\n```python\n{llm_briefs.SOURCE}```\n"
FAST = Retry(attempts=3, first=0.02, factor=1.5)
PRICES = {"m": Price(2.0, 8.0, 0.5), "n": Price(0.2, 0.8)}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def proposer(server, models=("m",), **more):
    fields = {
        "retry": FAST, "prices": PRICES, "timeouts": Timeouts(total=60, first=60, between=60), "expert_source": llm_briefs.expert_source,
        "max_output": 2000,
    }  # fmt: skip
    return LlmProposer(models, server.url, **(fields | more))


def propose(server, brief=None, **more):
    calls = []
    asked = proposer(server, on_call=calls.append, **more)
    return asyncio.run(asked.propose(brief or llm_briefs.brief("step"))), calls


def stopped(server, brief=None, **more):
    calls = []
    asked = proposer(server, on_call=calls.append, **more)
    with pytest.raises(ModelStopped) as caught:
        asyncio.run(asked.propose(brief or llm_briefs.brief("step")))
    assert "\n" not in str(caught.value)
    return caught.value, calls


def test_an_answer_becomes_a_candidate_with_its_usage_and_streams_as_it_comes():
    heard = []
    with Server(Say(GOOD, usage(cached=1000))) as server:
        answer, calls = propose(server, on_delta=lambda brief, text: heard.append((brief, text)))
    made = answer.candidate
    assert made.id == "k7" and made.entry == "rms_norm" and made.parents == ("k1",) and made.brief == "b7" and made.proposer == "llm:m"
    assert made.source == llm_briefs.SOURCE and made.plan == "hold the row in registers." and made.cites == ("rms_norm",)
    assert made.island == llm_briefs.ROLE.name and made.backend == "triton"
    assert "".join(text for _, text in heard) == GOOD and len(heard) > 10 and {brief for brief, _ in heard} == {"b7"}
    assert (answer.usage.tokens_in, answer.usage.tokens_out, answer.usage.estimated) == (1500, 300, False)
    assert answer.usage.money == pytest.approx((500 * 2 + 1000 * 0.5 + 300 * 8) / 1e6)
    (call,) = calls
    assert call.reply == GOOD and call.finish == "stop" and call.cached == 1000 and 0 <= call.first_seconds <= call.seconds
    body = server.requests[0]
    assert body["stream_options"] == {"include_usage": True} and body["max_tokens"] == 2000 and body["seed"] == 11
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("sent", [None, usage(0, 0), usage(1500, 5), usage(900_000_000, 300)], ids=["none", "zero", "few", "absurd"])
def test_usage_that_is_missing_or_wrong_is_estimated_and_marked(sent):
    with Server(Say(GOOD, sent)) as server:
        answer, calls = propose(server)
    assert answer.usage.estimated and calls[0].estimated
    assert answer.usage.tokens_out == -(-len(GOOD.encode()) * 2 // 7)
    assert 1500 < answer.usage.tokens_in < 6000


def test_429_is_tried_again_after_the_time_that_the_endpoint_asks_for():
    with Server(Refuse(429, "slow down", headers={"Retry-After": "0.4"}), Say(GOOD, usage())) as server:
        answer, calls = propose(server)
    assert answer.candidate and server.times[1] - server.times[0] >= 0.4
    assert [call.attempt for call in calls] == [1, 2] and "429" in calls[0].error and calls[0].tokens == 0


def test_retry_after_may_be_a_date_and_one_too_far_off_is_not_waited_for():
    from datetime import UTC, datetime, timedelta

    late = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    with Server(Refuse(429, "slow down", headers={"Retry-After": late})) as server:
        start = time.monotonic()
        stop, calls = stopped(server)
    assert time.monotonic() - start < 3 and len(calls) == 1
    assert stop.kind == "endpoint" and "asks to wait 3" in str(stop)


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(500, "oops"), Refuse(503, "", body="<html>Bad gateway</html>"), Refuse(529, "overloaded"), Reset(), Say(GOOD, cut_after=5),
        Say(GOOD, bad_json_after=4), Say(GOOD, finish=None), Say("", usage(1500, 1)), Say("   \n", usage(1500, 1)),
        Say(GOOD, error_after={"message": "The server had an error", "type": "server_error"}),
    ],
    ids=["500", "503 html", "529", "reset", "cut", "bad json", "no finish", "empty", "blank", "error in stream"],
)  # fmt: skip
def test_what_may_pass_is_tried_again(fault):
    with Server(fault, Say(GOOD, usage())) as server:
        answer, calls = propose(server)
    assert answer.candidate is not None and len(calls) == 2 and calls[0].error and not calls[1].error


def test_a_cut_stream_is_paid_for_by_estimate():
    with Server(Say(GOOD, cut_after=30), Say(GOOD, usage())) as server:
        answer, calls = propose(server)
    assert calls[0].reply == GOOD[:600] and calls[0].estimated and calls[0].tokens_out == 172
    assert answer.usage.tokens_out == 300 + 172 and answer.usage.estimated


@pytest.mark.parametrize("fault", [Hang(), Say(GOOD, hang_after=3)], ids=["no answer", "silent in the middle"])
def test_a_silent_endpoint_is_a_time_out_that_is_tried_again(fault):
    with Server(fault, Say(GOOD, usage())) as server:
        answer, calls = propose(server, timeouts=Timeouts(total=60, first=1, between=1))
    assert answer.candidate and calls[0].error == "the model did not answer in time" and 0.9 < calls[0].seconds < 5


def test_an_answer_that_never_ends_is_cut_at_the_total():
    with Server(Say("x" * 20_000, delay=0.02)) as server:
        stop, calls = stopped(server, timeouts=Timeouts(total=0.6, first=9, between=9), retry=Retry(attempts=1))
    assert "did not answer in time" in str(stop) and 0.5 < calls[0].seconds < 4


def test_a_fault_that_does_not_pass_ends_in_one_line_that_names_it():
    with Server(Refuse(500, "oops")) as server:
        stop, calls = stopped(server)
    assert str(stop) == "m failed 3 times, the last time so: HTTP 500: oops" and len(calls) == 3


def test_nobody_listens():
    with Server(Say("")) as server:
        url = server.url
    asked = LlmProposer(("m",), url, retry=Retry(attempts=2, first=0.01), prices=PRICES)
    with pytest.raises(ModelStopped, match=r"m failed 2 times, the last time so: the endpoint can't be reached \(ConnectError\)"):
        asyncio.run(asked.propose(llm_briefs.brief("seed")))


@pytest.mark.parametrize(
    ("refuse", "kind", "says"),
    [
        (Refuse(401, "Incorrect API key provided"), "key", "check OPENAI_API_KEY"),
        (Refuse(403, "forbidden"), "key", "HTTP 403"),
        (Refuse(404, "The model `m` does not exist", "model_not_found"), "model", "knows no model 'm'"),
        (Refuse(429, "You exceeded your current quota", "insufficient_quota"), "quota", "no quota left"),
        (Refuse(402, "Payment required"), "quota", "no quota left"),
        (Refuse(400, "messages: unknown role"), "request", "refused the request"),
    ],
    ids=["401", "403", "404", "quota", "402", "400"],
)
def test_what_does_not_pass_stops_at_once_with_its_reason(refuse, kind, says):
    with Server(refuse) as server:
        stop, calls = stopped(server)
    assert stop.kind == kind and says in str(stop) and len(calls) == 1


def test_a_model_that_is_not_there_leaves_the_others():
    notes = []
    with Server(lambda body: Refuse(404, "gone") if body["model"] == "m" else Say(GOOD, usage())) as server:
        asked = proposer(server, ("m", "n"), on_note=notes.append)

        async def several():
            return [await asked.propose(llm_briefs.brief("step", id=f"b{number}")) for number in range(8)]

        answers = asyncio.run(several())
    assert {answer.candidate.proposer for answer in answers} == {"llm:n"}
    assert [body["model"] for body in server.requests].count("m") == 1
    assert [note for note in notes if "not asked any more" in note] == [
        "m is not asked any more: the endpoint knows no model 'm' (HTTP 404): check --model and OPENAI_BASE_URL"
    ]


def test_once_the_person_has_mended_it_the_next_brief_tries_again():
    with Server(Refuse(401, "bad key"), Say(GOOD, usage())) as server:
        asked = proposer(server)
        with pytest.raises(ModelStopped):
            asyncio.run(asked.propose(llm_briefs.brief("step")))
        assert asyncio.run(asked.propose(llm_briefs.brief("step"))).candidate


TOO_LONG = Refuse(400, "This model's maximum context length is 2048 tokens.", "context_length_exceeded")


def test_a_prompt_that_is_too_long_is_cut_and_sent_again():
    with Server(TOO_LONG, Say(GOOD, usage())) as server:
        answer, calls = propose(server, llm_briefs.brief("step"))
    first, second = (sum(len(message["content"]) for message in body["messages"]) for body in server.requests)
    assert answer.candidate and second < first - 1500
    assert llm_briefs.SOURCE in server.requests[1]["messages"][1]["content"]
    assert "does not fit" in calls[0].error


def test_a_prompt_that_stays_too_long_after_cutting_stops():
    with Server(TOO_LONG) as server:
        stop, calls = stopped(server)
    assert stop.kind == "context" and "after cutting the prompt" in str(stop) and len(calls) == 3


def test_a_field_that_the_endpoint_refuses_is_put_another_way_and_remembered():
    def picky(body):
        if "max_tokens" in body:
            return Refuse(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
        if "seed" in body:
            return Refuse(422, "extra fields not permitted: seed")
        return Say(GOOD, usage())

    with Server(picky) as server:
        asked = proposer(server)

        async def twice():
            return [await asked.propose(llm_briefs.brief("step")) for _ in range(2)]

        assert all(answer.candidate for answer in asyncio.run(twice()))
    assert len(server.requests) == 4 and server.requests[-1]["max_completion_tokens"] == 2000


def test_cancel_ends_a_call_at_once_on_both_ends_and_records_it():
    calls = []
    with Server(Say(GOOD, hang_after=3)) as server:

        async def cancel():
            task = asyncio.create_task(proposer(server, on_call=calls.append).propose(llm_briefs.brief("step")))
            while not server.requests:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            start = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return time.monotonic() - start

        assert asyncio.run(cancel()) < 1
        assert server.gone.wait(10)
    assert calls[0].error == "cancelled" and calls[0].reply == GOOD[:60] and calls[0].tokens_out > 0


def test_concurrency_is_bounded():
    import threading

    active, most, lock = 0, 0, threading.Lock()

    def slow(body):
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        time.sleep(0.08)
        with lock:
            active -= 1
        return Say(GOOD, usage())

    with Server(slow) as server:
        asked = proposer(server, concurrency=3)

        async def many():
            return await asyncio.gather(*(asked.propose(llm_briefs.brief("step", id=f"b{n}")) for n in range(9)))

        assert len(asyncio.run(many())) == 9
    assert most == 3


def test_no_key_and_no_endpoint_names_the_mend(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelStopped, match=r"OPENAI_API_KEY is not set: .* or use the experts") as caught:
        asyncio.run(LlmProposer(("m",), prices=PRICES).propose(llm_briefs.brief("seed")))
    assert caught.value.kind == "key"


def test_a_local_server_needs_no_key_and_may_be_named_by_the_environment(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with Server(Say(GOOD, usage())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked = LlmProposer("m", prices=PRICES, retry=FAST, expert_source=llm_briefs.expert_source)
        assert asyncio.run(asked.propose(llm_briefs.brief("seed"))).candidate


def test_key_and_host_show_up_nowhere(caplog, capfd, monkeypatch):
    """Faults that quote the key and the address, at every log level, in every text that leaves the proposer."""
    caplog.set_level(logging.DEBUG)
    seen = []

    def quote(status):
        return lambda body: Refuse(
            status, f"key {KEY} at {server.url} (Bearer {KEY}) on 127.0.0.1:{port} is refused", headers={"X-Key": KEY}
        )

    with Server(quote(500), quote(429), quote(400)) as server:
        port = server.url.split(":")[-1].split("/")[0]
        asked = proposer(server, on_call=seen.append, on_note=seen.append, on_delta=lambda *parts: seen.append(parts))
        for script in ([quote(500), quote(429), quote(400)], [quote(401)], [Say(GOOD, cut_after=2)], [Reset()], [quote(404)]):
            server.script[:], server.requests[:] = script, []
            with pytest.raises(ModelStopped) as caught:
                asyncio.run(asked.propose(llm_briefs.brief("step")))
            assert caught.value.__context__ is None and caught.value.__cause__ is None
            seen += [str(caught.value), repr(caught.value), caught.value._render_traceback_()]
    printed = capfd.readouterr()
    text = json.dumps([repr(seen), repr(asked), repr(vars(asked)), caplog.text, printed.out, printed.err], ensure_ascii=False)
    for secret in (KEY, "sk-planted", port, "127.0.0.1"):
        assert secret not in text, text[max(0, text.find(secret) - 300) : text.find(secret) + 100]
    assert "HTTP 500" in text and len(seen) > 10

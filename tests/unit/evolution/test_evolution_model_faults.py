"""Bad days of an endpoint, and of the process: nothing is lost, nothing is paid twice, no key is anywhere."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from model_world import KEY, model, reply, writes
from scripted_fleet import ScriptedFleet, ScriptedProposer, diagnose
from server import Hang, Refuse, Reset, Say, Server, usage

from workbench import evolution
from workbench.brief import Budget
from workbench.errors import StoreError
from workbench.events import Asked, Ended, Evaluated, Noted, Proposed, StateChanged
from workbench.evolution.lessons import Unkept
from workbench.proposers.llm import Price, Timeouts
from workbench.proposers.recording import ReplayProposer
from workbench.records import dumps
from workbench.store import MemoryStore, Store

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def of(run, kind):
    return [stamped.event for stamped in run.events() if isinstance(stamped.event, kind)]


def check_nothing_lost_or_doubled(run, others=0):
    """Every ask is answered once, every call is charged once, and the last `Spent` says so."""
    asked = [event.brief.id for event in of(run, Asked)]
    answered = [event.proposal.brief for event in of(run, Proposed)]
    assert sorted(answered) == sorted(asked) and len(set(answered)) == len(answered)
    calls = run.calls()
    assert [call.number for call in calls] == list(range(1, len(calls) + 1))
    paid = sum(event.proposal.usage.tokens_in + event.proposal.usage.tokens_out for event in of(run, Proposed))
    assert paid == sum(call.tokens for call in calls) + others == (run.header()["spent"] or {"tokens": 0})["tokens"]
    assert (run.header()["spent"] or {"money": 0.0})["money"] == pytest.approx(sum(call.money for call in calls))
    assert [stamped.seq for stamped in run.events()] == list(range(1, len(run.events()) + 1))


def answer(body):
    return writes(body, 0)


def bad_json(body):
    return replace(answer(body), bad_json_after=2)


def cut(body):
    return replace(answer(body), cut_after=2)


@pytest.mark.parametrize(
    "fault", [Refuse(429, "slow down"), Refuse(500, "oops"), cut, bad_json, Reset(), Say("", usage()), Say("no code", usage())],
    ids=["429", "500", "cut", "bad json", "reset", "empty", "no code"],
)  # fmt: skip
def test_a_fault_that_passes_costs_what_it_costs_and_the_run_goes_on(begin, fault):
    with Server(answer, fault, answer) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(evaluations=3), auto=True, lanes=1)
        run.wait(30)
    assert run.reason == "budget: 3 of 3 evaluations are used"
    assert len(run.calls()) == len(server.requests) == 4
    check_nothing_lost_or_doubled(run)


TOO_LONG = Refuse(400, "This model's maximum context length is 2048 tokens.", "context_length_exceeded")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Refuse(429, "slow down", headers={"Retry-After": "0.4"}), "HTTP 429"), (Hang(), "did not answer in time"),
        (lambda body: replace(answer(body), hang_after=2), "did not answer in time"), (TOO_LONG, "does not fit the context"),
    ],
    ids=["Retry-After", "silent", "silent in the middle", "context"],
)  # fmt: skip
def test_what_is_waited_for_or_cut_short_is_one_more_call_and_nothing_is_lost(begin, fault, error):
    with Server(answer, fault, answer) as server:
        writer = model(server, timeouts=Timeouts(30, 0.5, 0.5))
        run, _ = begin(proposers=(writer,), budget=Budget(evaluations=3), auto=True, lanes=1)
        run.wait(30)
    assert run.reason == "budget: 3 of 3 evaluations are used" and len(of(run, Evaluated)) == 3
    failed = [call for call in run.calls() if call.error]
    assert len(failed) == 1 and error in failed[0].error and len(run.calls()) == len(server.requests) == 4
    check_nothing_lost_or_doubled(run)
    if isinstance(fault, Refuse) and "Retry-After" in fault.headers:
        assert server.times[2] - server.times[1] >= 0.4


@pytest.mark.parametrize("sent", [None, {"prompt_tokens": -5, "completion_tokens": 3}, {"prompt_tokens": "many"}, {}], ids=str)
def test_a_usage_that_is_missing_or_wrong_is_estimated_and_charged_once(begin, sent):
    with Server(answer, lambda body: replace(answer(body), usage=sent), answer) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(evaluations=3), auto=True, lanes=1)
        run.wait(30)
    assert [call.estimated for call in run.calls()] == [False, True, False] and len(server.requests) == 3
    assert all(call.tokens_in > 0 and call.tokens_out > 0 for call in run.calls())
    check_nothing_lost_or_doubled(run)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Refuse(401, f"bad key {KEY}"), "the endpoint refused the key (HTTP 401): check OPENAI_API_KEY"),
        (Refuse(429, "You exceeded your current quota", "insufficient_quota"), "the account has no quota left: "),
        (Refuse(404, "no model"), "the endpoint knows no model 'm' (HTTP 404): check --model and OPENAI_BASE_URL"),
        (Refuse(500, "oops"), "m failed 3 times, the last time so: HTTP 500: oops"),
        (cut, "m failed 3 times, the last time so: the stream was cut"),
    ],
    ids=["401", "quota", "404", "500", "cut"],
)
def test_a_model_that_stops_ends_a_run_that_runs_by_itself_and_pauses_one_that_is_stepped(begin, fault, said):
    with Server(answer, answer, fault) as server:
        run, _ = begin(proposers=(model(server),), auto=True, lanes=1)
        run.wait(30)
        assert run.state == "ended" and run.reason.startswith(said)
        warned = [event for event in of(run, Noted) if event.level == "warning"]
        assert [event.message for event in warned] == [f"llm:m is not asked any more: {run.reason}"]
        assert isinstance(run.events()[-1].event, Ended) and len(of(run, Evaluated)) == 2
        check_nothing_lost_or_doubled(run)

        server.script[:], server.requests[:] = [answer, fault], []
        stepped, _ = begin(proposers=(model(server),), lanes=1)
        stepped.wait(20)
        stepped.step(3).wait(20)
        assert stepped.state == "paused" and stepped.reason.startswith(said)
        server.script[:] = [answer]  # mended
        stepped.step().wait(20)
        assert stepped.state == "waiting" and len(of(stepped, Evaluated)) >= 2
        check_nothing_lost_or_doubled(stepped)


def test_where_the_model_stops_the_others_go_on(begin):
    with Server(answer, Refuse(401, "no")) as server:
        run, _ = begin(proposers=(model(server), ScriptedProposer("other")), budget=Budget(evaluations=5), auto=True, lanes=1)
        run.wait(20)
    assert run.reason == "budget: 5 of 5 evaluations are used"
    written = [row["proposer"] for row in run.rows()]
    assert written.count("llm:m") == 1 and written.count("other") == 4 and len(server.requests) == 2
    check_nothing_lost_or_doubled(run, others=4 * 10)


def test_of_two_models_the_one_that_stops_leaves_the_work_to_the_other(begin):
    with Server(lambda body: Refuse(404, "no model") if body["model"] == "m" else answer(body)) as server:
        cheap = {"m": Price(0.1, 0.1), "n": Price(10.0, 10.0)}
        run, _ = begin(proposers=(model(server, ("m", "n"), prices=cheap),), budget=Budget(evaluations=4), auto=True, lanes=1)
        run.wait(20)
    assert run.reason == "budget: 4 of 4 evaluations are used" and {row["proposer"] for row in run.rows()} == {"llm:n"}
    assert sum("m is not asked any more" in event.message for event in of(run, Noted)) == 1


def test_a_full_disk_at_a_call_pauses_and_loses_neither_call_nor_event(begin):
    class Full(MemoryStore):
        full = False

        def keep_call(self, run, call):
            if self.full:
                raise StoreError("memory: the disk is full: free some space, then resume the run")
            return super().keep_call(run, call)

        def extend(self, run, events, *, owner=""):
            if self.full:
                raise StoreError("memory: the disk is full: free some space, then resume the run")
            return super().extend(run, events, owner=owner)

    store = Full()
    with Server(answer) as server:
        run, _ = begin(store=store, proposers=(model(server),), budget=Budget(evaluations=4), lanes=1)
        run.wait(20)
        run.stream.listen(lambda news: setattr(store, "full", store.full or news.what == "text"))
        run.auto().wait(20)
        assert run.state == "paused" and "disk is full" in run.reason
        store.full = False
        run.stream._listeners.clear()
        run.resume().wait(20)
    assert run.state == "ended" and len(of(run, Evaluated)) == 4 and len(run.calls()) == len(server.requests) == 4
    check_nothing_lost_or_doubled(run)


def cut_store(events, calls, at, calls_kept):
    store = MemoryStore()
    store.extend("r1", [one.event for one in events[:at]])
    for call in calls[:calls_kept]:
        store.keep_call("r1", call)
    return store


def test_an_answer_that_was_stored_before_a_kill_is_used_and_paid_for_once(begin):
    with Server(answer) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(evaluations=6), auto=True, lanes=1)
        run.wait(20)
        whole, calls = run.events(), run.calls()
        for number in (2, 4):  # killed between the call's end and its Proposed
            at = next(place for place, one in enumerate(whole) if one.type == "Proposed" and one.event.proposal.brief == f"b{number}")
            server.requests.clear()
            store = cut_store(whole, calls, at, number)
            again = evolution.open_run(store, "r1", proposers=(model(server),), fleet=ScriptedFleet, diagnose=diagnose, lanes=1)
            again.resume().wait(20)
            again.close()
            assert len(server.requests) == 6 - number and len(store.calls("r1")) == 6
            check_nothing_lost_or_doubled(again)
            assert [dumps(event) for event in of(again, Proposed)] == [dumps(event) for event in of(run, Proposed)]
            assert again.header()["spent"]["tokens"] == run.header()["spent"]["tokens"]


def test_a_stored_answer_is_used_whichever_model_the_bandit_would_choose_now(begin):
    alike = {"m": Price(1.0, 1.0), "n": Price(1.0, 1.0)}
    with Server(answer) as server:
        run, _ = begin(proposers=(model(server, ("m", "n"), prices=alike),), budget=Budget(evaluations=6), auto=True, lanes=1)
        run.wait(20)
        whole, calls = run.events(), run.calls()
        assert {call.model for call in calls} == {"m", "n"}
        for number in range(2, 6):
            at = next(place for place, one in enumerate(whole) if one.type == "Proposed" and one.event.proposal.brief == f"b{number}")
            store = cut_store(whole, calls, at, number)
            again = evolution.open_run(
                store, "r1", proposers=(model(server, ("m", "n"), prices=alike),), fleet=ScriptedFleet, diagnose=diagnose, lanes=1
            )
            again.resume().wait(20)
            again.close()
            first = [call for call in store.calls("r1") if call.brief == f"b{number}"]
            assert len(first) == 1 and first[0].model == calls[number - 1].model


def python(code, *args):
    paths = (HERE, HERE.parent / "llm", Path.cwd())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        text=True,
    )  # fmt: skip


def test_kill_9_during_a_call_goes_on_and_charges_it_once_and_the_key_is_nowhere(tmp_path, monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    script = """
        import logging, sys
        from types import SimpleNamespace
        from model_world import model
        from scripted_fleet import TASK, ScriptedFleet, diagnose
        from workbench import evolution
        from workbench.brief import Budget
        from workbench.store import Store
        logging.basicConfig(level=logging.DEBUG)
        run = evolution.start(TASK, fleet=ScriptedFleet, proposers=(model(SimpleNamespace(url=sys.argv[2])),), diagnose=diagnose,
                              auto=True, lanes=1, store=Store(sys.argv[1]), budget=Budget(evaluations=5), seed=9)
        run.wait()
    """
    with Server(answer, answer, lambda body: Say(reply(3) * 3, hang_after=4), answer) as server:
        process = python(script, tmp_path, server.url)
        end = time.monotonic() + 60
        while len(server.requests) < 3 and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        printed, logged = process.communicate(timeout=20)

        store = Store(tmp_path)
        name = store.run("last").id
        assert len(store.calls(name)) == 2 and store.events(name)[-1].type in ("Asked", "StateChanged")
        run = evolution.open_run(store, name, proposers=(model(server),), fleet=ScriptedFleet, diagnose=diagnose, lanes=1)
        run.resume().wait(30)
        run.close()
        secrets = (KEY, "planted-secret", server.url, server.url.removeprefix("http://").removesuffix("/v1"))
    assert run.reason == "budget: 5 of 5 evaluations are used" and len(run.calls()) == 5
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    check_nothing_lost_or_doubled(run)

    out = capfd.readouterr()
    texts = {
        "events": "".join(map(dumps, (one.event for one in run.events()))), "summary": json.dumps(run.summary()),
        "header": str(run.header()),
        "calls": "".join(map(dumps, run.calls())), "log": caplog.text + logged, "printed": printed + out.out + out.err,
        "repr": repr(run) + repr(run.proposers) + repr(vars(run.proposers[0])),
    }  # fmt: skip
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    files += list(Path(os.environ["WORKBENCH_EXPERIENCE"]).parent.iterdir())
    assert any(path.name == "workbench.db" for path in files) and any(path.name == "experience.db" for path in files)
    texts |= {str(path): path.read_bytes().decode("latin-1") for path in files}
    for place, text in texts.items():
        for secret in secrets:
            assert secret not in text, f"{secret} in {place}"


@pytest.mark.parametrize("alone", [True, False])
def test_a_recorded_run_is_replayed_without_any_endpoint(begin, monkeypatch, alone):
    with Server(lambda body: writes(body, 3)) as server:
        others = () if alone else (ScriptedProposer("experts"),)
        run, _ = begin(
            proposers=(*others, model(server)), budget=Budget(evaluations=14, tokens=10**6), auto=True, lanes=1, seed=4, experience=Unkept()
        )
        run.wait(30)
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed, _ = begin(
        proposers=(ReplayProposer.of_events(run.events()),), budget=Budget(evaluations=14, tokens=10**6), auto=True, seed=4,
        experience=Unkept(),
    )  # fmt: skip
    replayed.wait(20)
    kept = (Asked, Proposed, Evaluated, StateChanged, Ended)
    assert [dumps(event) for event in of(replayed, kept)] == [dumps(event) for event in of(run, kept)]
    assert replayed.header()["spent"]["tokens"] == run.header()["spent"]["tokens"] > 0 and replayed.calls() == ()


def test_a_silent_endpoint_does_not_hold_up_a_stop_by_the_clock(begin):
    with Server(answer, Hang()) as server:
        run, _ = begin(proposers=(model(server),), budget=Budget(seconds=1.5), auto=True, lanes=1)
        before = time.perf_counter()
        run.wait(30)
        assert time.perf_counter() - before < 10
    assert "seconds are used" in run.reason and run.calls()[-1].error == "cancelled"

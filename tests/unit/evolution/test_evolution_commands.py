"""The object that people hold: commands, the four words, waiting, misuse."""

from __future__ import annotations

import _thread
import asyncio
import signal
import threading
import time

import pytest
from scripted_fleet import TASK, Failing, ScriptedFleet, ScriptedProposer, source_of

from workbench.brief import Budget
from workbench.errors import MisuseError, NoSuchCandidateError
from workbench.events import AcceptedCandidate, Noted, Proposed, StateChanged


def states(run):
    return [stamped.event.state for stamped in run.events() if isinstance(stamped.event, StateChanged)]


def test_it_answers_at_once_judges_one_seed_and_waits_for_step(begin):
    before = time.perf_counter()
    run, fleet = begin(ScriptedFleet(prepare_seconds=0.3, seconds=0.05))
    assert time.perf_counter() - before < 0.25
    assert run.state == "preparing"
    run.wait(10)
    assert (run.state, run.reason) == ("waiting", "press Step, or Auto")
    assert states(run) == ["preparing", "running", "waiting"]
    assert fleet.judged == ["k1.0"]
    assert [row["verdict"] for row in run.rows()] == ["right"]
    time.sleep(0.1)
    assert fleet.judged == ["k1.0"]


def test_step_judges_so_many_more(begin):
    run, fleet = begin()
    run.step().wait(10)
    assert len(fleet.judged) == 2
    run.step(3).wait(10)
    assert (len(fleet.judged), run.state) == (5, "waiting")
    with pytest.raises(MisuseError, match="step: 0 steps"):
        run.step(0)


def test_auto_runs_to_the_end(begin):
    run, fleet = begin(budget=Budget(evaluations=12), auto=True)
    run.wait(20)
    assert (run.state, run.reason) == ("ended", "budget: 12 of 12 evaluations are used")
    assert len(fleet.judged) == 12 and fleet.closed
    assert run.best.candidate.id == max(run.rows(), key=lambda row: -row["time_us"])["id"]
    assert run.result().evaluation.time_us == run.header()["best"]["time_us"]


def test_pause_lets_running_ones_finish_and_resume_goes_on(begin):
    run, fleet = begin(ScriptedFleet(seconds=0.1), auto=True, budget=Budget(evaluations=8))
    while not fleet.judged:
        time.sleep(0.01)
    run.pause().wait(10)
    done = len(fleet.judged)
    assert run.state == "paused" and fleet.running == 0 and 1 <= done < 8
    time.sleep(0.25)
    assert len(fleet.judged) == done
    assert all(row["verdict"] == "right" for row in run.rows())
    run.resume().wait(20)
    assert (run.state, len(fleet.judged)) == ("ended", 8)


def test_step_after_a_pause_of_auto_ends_auto(begin):
    run, fleet = begin(auto=True, fleet=ScriptedFleet(seconds=0.02))
    run.pause().wait(10)
    done = len(fleet.judged)
    run.step(2).wait(10)
    assert (run.state, len(fleet.judged)) == ("waiting", done + 2)


def test_stop_finishes_the_running_one_and_ends(begin):
    run, fleet = begin(ScriptedFleet(seconds=0.3), auto=True)
    while not fleet.running:
        time.sleep(0.01)
    run.stop().wait(10)
    assert (run.state, run.reason) == ("ended", "stopped by the person")
    assert [row["verdict"] for row in run.rows()] == ["right"] * len(fleet.judged)
    assert "stopping" in states(run)


def test_cancel_kills_the_running_one_at_once(begin):
    run, fleet = begin(ScriptedFleet(seconds=60), auto=True)
    while not fleet.running:
        time.sleep(0.01)
    before = time.perf_counter()
    run.cancel().wait(10)
    assert time.perf_counter() - before < 2
    assert (run.state, run.reason) == ("ended", "cancelled by the person")
    assert [(row["verdict"], row["reason"]) for row in run.rows()] == [("not_judged", "cancelled")]


def test_cancel_does_not_wait_for_a_proposer(begin):
    run, _ = begin(proposers=(ScriptedProposer(seconds=60),), auto=True)
    time.sleep(0.2)
    before = time.perf_counter()
    run.cancel().wait(10)
    assert (run.state, time.perf_counter() - before < 3) == ("ended", True)


def test_stop_while_the_judge_starts(begin):
    run, _ = begin(ScriptedFleet(prepare_seconds=60))
    run.stop().wait(5)
    assert (run.state, run.reason) == ("ended", "stopped by the person")


@pytest.fixture
def interruptible():
    """A shell that starts the tests in the background makes them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_waiting_pauses_and_returns(begin, interruptible):
    run, fleet = begin(ScriptedFleet(seconds=0.1), auto=True)
    threading.Timer(0.4, _thread.interrupt_main).start()
    assert run.wait(30) is run
    run.wait(10)
    assert run.state == "paused"
    assert fleet.judged
    run.stop()


def test_wait_with_a_timeout_returns_while_it_runs(begin):
    run, _ = begin(ScriptedFleet(seconds=5), auto=True)
    before = time.perf_counter()
    run.wait(0.2)
    assert 0.15 < time.perf_counter() - before < 2 and run.state in ("running", "preparing")


def test_finished_can_be_awaited_without_blocking_the_loop(begin):
    run, _ = begin(ScriptedFleet(seconds=0.1), auto=True, budget=Budget(evaluations=3))

    async def both():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        heart = asyncio.ensure_future(beat())
        await asyncio.wait_for(run.finished(), 20)
        heart.cancel()
        return beats

    assert asyncio.run(both()) > 10
    assert run.state == "ended"
    asyncio.run(asyncio.wait_for(run.finished(), 1))  # at once


def test_hints_and_bans_reach_the_proposer(begin):
    proposer = ScriptedProposer()
    run, _ = begin(proposers=(proposer,))
    run.wait(10)
    run.hint("try split-K").ban("no atomics").step().wait(10)
    assert (proposer.briefs[-1].hints, proposer.briefs[-1].bans) == (("try split-K",), ("no atomics",))
    assert (run.header()["hints"], run.header()["bans"]) == (["try split-K"], ["no atomics"])
    with pytest.raises(MisuseError, match="hint: say what"):
        run.hint("  ")


def test_a_submission_is_judged_next_without_a_step(begin):
    run, fleet = begin()
    run.wait(10)
    name = run.submit(source_of(50), parent="k1", plan="mine")
    run.wait(10)
    detail = run.candidate(name)
    assert (detail.candidate.proposer, detail.candidate.parents, detail.evaluation.verdict.value) == ("person", ("k1",), "right")
    assert run.best.candidate.id == name and len(fleet.judged) == 2
    assert run.candidate("k1").children == (name,)
    with pytest.raises(MisuseError, match=f"this is the source of {name}"):
        run.submit(source_of(50))


def test_branch_is_one_candidate_from_that_one_and_pin_holds(begin):
    run, _ = begin()
    run.step(4).wait(10)
    run.branch("k2").wait(10)
    last = run.rows()[-1]
    assert last["parents"] == ["k2"] and len(run.rows()) == 6
    run.pin("k1").step(3).wait(10)
    assert [row["parents"] for row in run.rows()[-3:]] == [["k1"]] * 3
    assert run.header()["pinned"] == "k1"
    with pytest.raises(NoSuchCandidateError, match="no candidate 'k99'"):
        run.pin("k99")


def test_after_the_end_words_are_one_line_and_harmless_ones_are_ignored(begin):
    run, _ = begin(budget=Budget(evaluations=1))
    run.wait(10)
    run.pause().stop().cancel()
    assert run.state == "ended"
    for word in (lambda: run.hint("x"), lambda: run.submit(source_of(1)), lambda: run.branch("k1")):
        with pytest.raises(MisuseError, match=r"is not running \(budget: 1 of 1 evaluations are used\): call resume\(\)"):
            word()


def test_commands_may_come_from_any_thread(begin):
    run, fleet = begin()
    run.wait(10)
    threads = [threading.Thread(target=lambda: (run.step(), run.hint("a"), run.header(), run.rows())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.wait(20)
    assert len(fleet.judged) == 9


def test_a_subscriber_that_fails_does_not_stop_the_run(begin, caplog):
    run, fleet = begin()
    seen = []

    def bad(stamped):
        seen.append(stamped.seq)
        raise ValueError("oops")

    run.wait(10)
    unsubscribe = run.subscribe(bad)
    run.step(2).wait(10)
    assert len(fleet.judged) == 3 and seen
    assert "a subscriber of run" in caplog.text
    count = len(seen)
    unsubscribe()
    run.step().wait(10)
    assert len(seen) == count


def test_waiting_in_a_subscriber_is_refused_not_a_deadlock(begin):
    run, _ = begin()
    said = []

    def wait(stamped):
        try:
            run.wait()
        except MisuseError as error:
            said.append(str(error))

    run.subscribe(wait)
    run.step().wait(10)
    assert said and "can't wait" in said[0]


def test_an_accept_is_recorded_while_it_runs_and_after(begin):
    from workbench.candidate import Evidence

    run, _ = begin()
    run.wait(10)
    evidence = Evidence(TASK.id, run.id, "k1", "s", "r", "a", run.best.evaluation)
    run.record(AcceptedCandidate(evidence, "code", "below"))
    assert run.rows()[0]["accepted"]
    run.stop().wait(10)
    run.record(Noted("later"))
    assert run.events()[-1].event == Noted("later")


def test_proposers_that_have_nothing_leave_a_stepped_run_waiting_and_end_auto(begin):
    run, _ = begin(proposers=(Failing(),))
    run.wait(10)
    assert (run.state, run.reason) == ("waiting", "nothing new: failing: nothing new on this island")
    name = run.submit(source_of(4))
    run.wait(10)
    assert run.candidate(name).evaluation.verdict.passes
    run.auto().wait(10)
    assert (run.state, run.reason.split(":")[0]) == ("ended", "nothing new")


def test_an_exception_of_a_proposer_is_an_event(begin):
    run, _ = begin(proposers=(Failing(ValueError("bad\nsecond line"), name="one"), ScriptedProposer("two")), budget=Budget(evaluations=3))
    run.auto().wait(10)
    assert run.state == "ended" and len(run.rows()) == 3  # the other one answers
    run, _ = begin(proposers=(Failing(ValueError("bad\nsecond line"), name="one"),))
    run.wait(10)
    proposals = [stamped.event.proposal for stamped in run.events() if isinstance(stamped.event, Proposed)]
    assert {proposal.reason for proposal in proposals} == {"one: ValueError: bad"}
    assert run.state == "waiting"

"""The loop: events before eyes, attempts that overlap, budgets, lost judges, a store that fails."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, source_of

from workbench import evolution
from workbench.brief import Budget, Proposal
from workbench.candidate import Candidate
from workbench.errors import MisuseError, StoreError
from workbench.events import Asked, Ended, Evaluated, Noted, Proposed, Spent, StateChanged
from workbench.evolution import loop
from workbench.records import dumps
from workbench.store import MemoryStore, Store

TUNE = "TUNE = {'BLOCK': [64, 128, 256]}"


def test_the_loop_is_short_enough_to_read_aloud():
    text = Path(loop.__file__).read_text()
    assert len(text.splitlines()) < 200
    attempt = text[text.index("async def attempt") :].split("\n\n\n")[0]
    order = [attempt.index(word) for word in ("# Propose", "# Judge", "# Diagnose", "# Tell")]
    assert order == sorted(order) and len(attempt.splitlines()) < 40


def test_an_event_is_in_the_store_before_anybody_sees_it(begin, tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    run, _ = begin(store=store, budget=Budget(evaluations=3))
    missing = []

    def look(stamped):
        if stamped.seq not in {one.seq for one in other.events(run.id, stamped.seq - 1)}:
            missing.append(stamped)

    run.subscribe(look)
    run.auto().wait(20)
    assert run.state == "ended" and missing == []
    store.close()
    other.close()


def test_each_attempt_is_asked_proposed_evaluated_and_what_it_taught_is_in_one_transaction(begin):
    class Counting(MemoryStore):
        batches = []  # noqa: RUF012

        def extend(self, run, events, *, owner=""):
            self.batches.append([type(event).__name__ for event in events])
            return super().extend(run, events, owner=owner)

    store = Counting()
    run, _ = begin(store=store, budget=Budget(evaluations=2), auto=True)
    run.wait(10)
    told = [batch for batch in store.batches if "Evaluated" in batch]
    assert told[0] == ["Evaluated", "BestChanged", "Spent"]
    kinds = [stamped.type for stamped in run.events() if stamped.type in ("Asked", "Proposed", "Evaluated", "Spent", "Ended")]
    assert kinds == ["Asked", "Proposed", "Evaluated", "Spent"] * 2 + ["Ended"]
    assert all(not stamped.event.brief.tried for stamped in run.events() if isinstance(stamped.event, Asked))


def test_the_proposer_is_told_what_was_tried(begin):
    proposer = ScriptedProposer()
    run, _ = begin(proposers=(proposer,))
    run.step(2).wait(10)
    assert [len(brief.tried) for brief in proposer.briefs] == [0, 1, 2]


def test_briefs_in_flight_are_told_what_earlier_ones_brought(begin):
    proposer = ScriptedProposer()
    run, _ = begin(ScriptedFleet(seconds=0.02), proposers=(proposer,), budget=Budget(evaluations=4), auto=True, lanes=4)
    run.wait(10)
    assert [len(brief.tried) for brief in proposer.briefs[:4]] == [0, 0, 0, 0]  # it waits before it answers, as a model does

    class Prompt(ScriptedProposer):
        async def propose(self, brief):
            self.briefs.append(brief)
            return Proposal(brief.id, Candidate("?", "triton", source_of(len(brief.tried)), "?", proposer=self.name))

    run, _ = begin(ScriptedFleet(seconds=0.02), proposers=(Prompt(),), budget=Budget(evaluations=4), auto=True, lanes=4)
    run.wait(10)
    assert [stamped.event.proposal.reason for stamped in run.events() if isinstance(stamped.event, Proposed)] == [""] * 4


@pytest.mark.parametrize("lanes", [1, 3])
def test_attempts_overlap_up_to_the_lanes_and_change_nothing(begin, lanes):
    def seconds(name):
        return 0.02 if int(name[1:]) % 3 else 0.1  # later ones overtake

    run, fleet = begin(ScriptedFleet(seconds=seconds), lanes=lanes, budget=Budget(evaluations=24), auto=True, proposers=(
        ScriptedProposer(tune=TUNE, wrong_every=5),
    ))  # fmt: skip
    run.wait(30)
    assert fleet.most == lanes and run.state == "ended"
    assert len(fleet.judged) == len(set(fleet.judged)) == 24
    briefs = [stamped.event.brief.id for stamped in run.events() if isinstance(stamped.event, Asked)]
    assert briefs == [f"b{number}" for number in range(1, len(briefs) + 1)]
    best = [stamped.event.time_us for stamped in run.events() if stamped.type == "BestChanged"]
    assert best == sorted(best, reverse=True)


@pytest.mark.parametrize("first", ["k1", "k2", "k3"])
def test_whichever_of_the_first_three_comes_last_the_search_learns_the_same(begin, first):
    run, _ = begin(ScriptedFleet(seconds=lambda name: 0.15 if name == first else 0.01), lanes=3, budget=Budget(evaluations=3), auto=True)
    run.wait(30)
    members = [name for island in run._run.search.islands for name in island.members]
    assert members == ["k1", "k2", "k3"]
    told = [stamped.event.candidate for stamped in run.events() if stamped.type == "BestChanged"]
    assert told[0] == "k1"  # the first to be asked is the first to be learnt from


def test_the_same_seed_gives_the_same_run(begin):
    def gist(seed):
        run, _ = begin(seed=seed, budget=Budget(evaluations=20), auto=True, proposers=(ScriptedProposer(tune=TUNE, wrong_every=4),))
        run.wait(20)
        return [dumps(stamped.event) for stamped in run.events() if stamped.type in ("Asked", "Proposed", "Evaluated", "Migrated")]

    assert gist(5) == gist(5)
    assert gist(5) != gist(6)


def test_evaluations_are_capped_and_spent_is_told_with_each(begin):
    run, fleet = begin(budget=Budget(evaluations=5), auto=True, lanes=4)
    run.wait(20)
    assert len(fleet.judged) == 5
    spent = [stamped.event.spent.evaluations for stamped in run.events() if isinstance(stamped.event, Spent)]
    assert spent == [1, 2, 3, 4, 5]
    assert run.header()["spent"]["tokens"] == 50


def test_seconds_end_the_run_and_kill_what_is_in_flight(begin):
    run, _ = begin(ScriptedFleet(seconds=lambda name: 0.05 if name == "k1" else 60), budget=Budget(seconds=0.6), auto=True)
    before = time.perf_counter()
    run.wait(20)
    assert 0.5 < time.perf_counter() - before < 3
    assert run.reason == "budget: 0.6 of 0.6 seconds are used" or run.reason.endswith("of 0.6 seconds are used")
    assert [row["verdict"] for row in run.rows()] == ["right", "not_judged"]


def test_seconds_end_a_run_whose_judge_is_not_ready_yet(begin):
    run, fleet = begin(ScriptedFleet(prepare_seconds=60), budget=Budget(seconds=0.5), auto=True)
    run.wait(20)
    assert (run.state, run.reason) == ("ended", "budget: 0.5 of 0.5 seconds are used") and fleet.closed
    assert run.rows() == [] and not fleet.judged


def test_what_the_start_of_the_judge_took_is_taken_off_the_seconds(begin):
    run, _ = begin(ScriptedFleet(prepare_seconds=0.5, seconds=60), budget=Budget(seconds=0.9), auto=True)
    run.wait(20)
    assert run.reason.endswith("of 0.9 seconds are used") and len(run.rows()) == 1
    assert run.header()["spent"]["seconds"] >= 0.9


def test_no_candidate_is_asked_for_once_the_seconds_are_over(begin):
    run, _ = begin(ScriptedFleet(seconds=0.3), budget=Budget(seconds=0.2), auto=True)
    run.wait(20)
    assert run.reason.endswith("seconds are used")
    asked = [stamped for stamped in run.events() if stamped.type == "Asked"]
    assert len(asked) == 1


@pytest.mark.parametrize("budget", [Budget(money=float("nan")), Budget(tokens=-1), Budget(seconds=float("inf")), Budget(tune=-1)], ids=str)
def test_a_cap_that_is_no_amount_starts_nothing(begin, budget):
    with pytest.raises(MisuseError, match=r"budget: \w+ .*: give an amount from 0 on, or None for no cap"):
        begin(budget=budget)


def test_waiting_and_pauses_cost_no_seconds(begin):
    run, _ = begin(budget=Budget(seconds=0.8))
    run.wait(10)
    time.sleep(1.0)
    assert run.state == "waiting"
    run.step().wait(10)
    assert run.state == "waiting"
    assert run.header()["spent"]["seconds"] < 0.5


def test_the_floor_ends_the_run(begin):
    run, _ = begin(ScriptedFleet(floor_us=60.0), auto=True)
    run.wait(20)
    assert run.reason.startswith("floor: ") and run.best.evaluation.time_us <= 60 / 0.95


def test_a_judge_that_cannot_start_ends_the_run_with_its_reason(begin):
    run, _ = begin(ScriptedFleet(broken="the judge can't be started: no compiler"))
    run.wait(10)
    assert (run.state, run.reason) == ("ended", "the judge can't be started: no compiler")


def test_a_lost_judge_is_survived_a_few_times_then_ends_the_run(begin):
    run, fleet = begin(ScriptedFleet(lost=True), auto=True)
    run.wait(10)
    assert run.reason == "5 candidates in a row could not be judged: the judge was lost"
    assert len(fleet.judged) == 5


def test_with_nobody_to_write_the_run_waits_for_a_variant(begin):
    run, _ = begin(proposers=())
    run.wait(10)
    assert run.state == "waiting" and "submit a variant" in run.reason
    assert not [stamped for stamped in run.events() if isinstance(stamped.event, Asked)]
    name = run.submit(source_of(9, TUNE))
    run.wait(10)
    assert run.best.candidate.id == name
    run.step(2).wait(10)  # its tunable points need no proposer
    assert run.candidate(name).evaluation.parameters == {"BLOCK": 256}
    assert len(run.candidate(name).evaluations) == 3


def test_a_diagnosis_that_fails_is_a_note(begin):
    def broken(evaluation, task, floor_us):
        raise ZeroDivisionError("oops")

    fleet = ScriptedFleet()
    run = evolution.start(
        TASK, fleet=lambda: fleet, proposers=(ScriptedProposer(),), diagnose=broken, budget=Budget(evaluations=2), auto=True
    )
    run.wait(10)
    run.close()
    assert len(fleet.judged) == 2
    notes = [stamped.event for stamped in run.events() if isinstance(stamped.event, Noted) and stamped.event.level == "warning"]
    assert notes == [Noted(f"no diagnosis of k{n}.0: ZeroDivisionError: oops", "warning") for n in (1, 2)]


def test_an_error_of_the_fleet_ends_the_run_instead_of_hanging_it(begin):
    class Broken(ScriptedFleet):
        async def evaluate(self, *args, **more):
            raise RuntimeError("a bug")

    run, fleet = begin(Broken(), auto=True)
    run.wait(10)
    assert (run.state, run.reason, fleet.closed) == ("ended", "the run failed: RuntimeError: a bug", True)


class Flaky(MemoryStore):
    """A store whose disk is full while `full` is set, or from an event of the type `full_at` on."""

    full = False
    full_at = ""

    def extend(self, run, events, *, owner=""):
        self.full = self.full or any(type(event).__name__ == self.full_at for event in events)
        if self.full:
            raise StoreError("memory: the disk is full: free some space, then resume the run")
        return super().extend(run, events, owner=owner)


@pytest.mark.parametrize("kind", ["Asked", "Proposed", "Evaluated"])
def test_a_full_disk_pauses_the_run_and_nothing_is_lost(begin, kind):
    store = Flaky()
    run, fleet = begin(store=store, budget=Budget(evaluations=8))
    run.wait(10)
    seen = []
    run.subscribe(seen.append)
    run.step().wait(10)
    store.full_at = kind
    run.auto().wait(10)
    assert (run.state, run.reason) == ("paused", "memory: the disk is full: free some space, then resume the run")
    judged = len(fleet.judged)
    assert judged < 8
    kept = run.events()
    run.resume().wait(10)
    assert run.state == "paused" and len(run.events()) == len(kept)  # still full
    store.full, store.full_at = False, ""
    run.resume().wait(10)
    assert (run.state, len(fleet.judged)) == ("ended", 8)
    stored = run.events()
    assert [stamped.seq for stamped in stored] == list(range(1, len(stored) + 1))
    assert len([stamped for stamped in stored if isinstance(stamped.event, Evaluated)]) == 8
    assert [stamped for stamped in seen if stamped.seq] == [stamped for stamped in stored if stamped.seq >= seen[0].seq]
    shown = [stamped.event for stamped in seen if not stamped.seq]
    assert shown and all(isinstance(event, StateChanged) and event.state == "paused" for event in shown)


def test_stopping_with_a_full_disk_says_what_could_not_be_stored(begin):
    store = Flaky()
    run, _ = begin(ScriptedFleet(seconds=0.05), store=store)
    run.wait(10)
    store.full = True
    run.step().wait(10)
    run.stop().wait(10)
    assert run.state == "ended" and "events could not be stored: memory: the disk is full" in run.reason


def test_a_store_that_cannot_be_written_is_an_error_at_the_start():
    store = Flaky()
    store.full = True
    with pytest.raises(StoreError, match="disk is full"):
        evolution.start(TASK, fleet=ScriptedFleet, proposers=(ScriptedProposer(),), store=store)


def test_the_end_is_the_last_event_and_the_proposals_cost_what_they_cost(begin):
    run, _ = begin(budget=Budget(tokens=45), auto=True)
    run.wait(10)
    events = run.events()
    assert isinstance(events[-1].event, Ended) and events[-1].event.best == run.best.candidate.id
    assert run.reason == "budget: 40 of 45 tokens are used, and one more may take 10"
    assert len([stamped for stamped in events if isinstance(stamped.event, Proposed)]) == 4

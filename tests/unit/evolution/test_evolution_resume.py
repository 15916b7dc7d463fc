"""Going on where the store ends: after a restart, after kill -9, after an end; and a cell that runs again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose, source_of

from workbench import evolution
from workbench.brief import Budget
from workbench.errors import MisuseError, NoSuchRunError
from workbench.events import Asked, Evaluated, Noted, Proposed, RunStarted
from workbench.evolution.replay import replay
from workbench.records import dumps
from workbench.store import MemoryStore, Store

HERE = Path(__file__).parent
TUNE = "TUNE = {'BLOCK': [64, 128, 256]}"


def writer() -> ScriptedProposer:
    return ScriptedProposer(tune=TUNE, wrong_every=4)


def opened(store, run, fleet=None, **more):
    fleet = fleet or ScriptedFleet()
    return evolution.open_run(store, run, proposers=(writer(),), fleet=lambda: fleet, diagnose=diagnose, **more)


def busy_run(store, begin, evaluations=20):
    """A run with everything in it: repairs, points, a hint, a pin, a submission, several lanes."""
    run, _ = begin(store=store, proposers=(writer(),), lanes=2, budget=Budget(evaluations=evaluations))
    run.step(5).wait(10)
    run.hint("try one pass").ban("atomics")
    run.submit(source_of(20, TUNE), parent="k1", plan="mine")
    run.wait(10)
    run.branch("k2").wait(10)
    run.pin("k1").step(2).wait(10)
    run.pin().step(3).wait(10)
    return run


def gist(events):
    """What happened, but for the clock and for what earlier runs taught."""
    kept = (Asked, Proposed, Evaluated)
    return [
        dumps(replace(one.event, brief=replace(one.event.brief, left=Budget(), cards=())) if isinstance(one.event, Asked) else one.event)
        for one in events if isinstance(one.event, kept)
    ]  # fmt: skip


def test_replay_rebuilds_the_very_search(begin):
    store = MemoryStore()
    run = busy_run(store, begin)
    live, rebuilt = run._run.search, replay(run.events()).search
    for _ in range(3):
        one, other = live.ask(), rebuilt.ask()
        assert dumps(one) == dumps(other)
    assert dumps(live.spent) == dumps(rebuilt.spent)
    assert dumps(live.elites()) == dumps(rebuilt.elites())


def test_a_run_that_was_cut_anywhere_goes_on_as_if_nothing_had_happened(begin):
    def whole(store):
        run, _ = begin(store=store, proposers=(writer(),), budget=Budget(evaluations=16), auto=True, seed=3)
        run.wait(20)
        return run.events()

    events = whole(MemoryStore())
    first = next(place for place, one in enumerate(events) if one.type == "Prepared")
    for cut in range(first, len(events) - 1, 7):
        store = MemoryStore()
        store.extend("r1", [one.event for one in events[: cut + 1]])
        run = opened(store, "r1")
        run.resume().wait(20)
        run.close()
        assert gist(run.events()) == gist(events), cut


def test_a_stored_run_looks_the_same_without_any_judge(begin, tmp_path):
    store = Store(tmp_path)
    run = busy_run(store, begin)
    run.stop().wait(10)
    again = evolution.open_run(Store(tmp_path), run.id)
    assert not again.alive and again.state == "ended"
    assert again.rows() == run.rows() and again.header() == run.header()
    for name in run.names():
        assert again.candidate(name) == run.candidate(name)
    assert again.candidate("k1").brief.kind == "seed"
    assert dumps(again.best) == dumps(run.best) and again.summary() == run.summary()
    with pytest.raises(MisuseError, match="call resume"):
        again.hint("x")


def test_going_on_after_a_stop_and_after_the_budget(begin, tmp_path):
    store = Store(tmp_path)
    run, _ = begin(store=store, proposers=(writer(),), budget=Budget(evaluations=6))
    run.step().wait(10)
    run.stop().wait(10)
    again = opened(store, run.id)
    again.step(2).wait(10)
    assert (again.state, again.header()["evaluations"]) == ("waiting", 4)
    again.auto().wait(10)
    assert again.reason == "budget: 6 of 6 evaluations are used"
    again.resume().wait(10)
    assert again.reason == "budget: 6 of 6 evaluations are used" and again.header()["evaluations"] == 6
    again.close()


def test_the_very_object_can_go_on_after_an_end(begin):
    fleets = []

    def fleet():
        fleets.append(ScriptedFleet())
        return fleets[-1]

    run = evolution.start(TASK, fleet=fleet, proposers=(writer(),), diagnose=diagnose)
    run.wait(10)
    run.stop().wait(10)
    run.step(2).wait(10)
    assert (run.state, len(run.rows())) == ("waiting", 3)
    assert len(fleets) == 2 and fleets[0].closed
    run.close()


def test_another_device_is_not_mixed_in(begin):
    store = MemoryStore()
    run, _ = begin(store=store, proposers=(writer(),))
    run.wait(10)
    run.stop().wait(10)
    again = opened(store, run.id, ScriptedFleet(device="gpu: NVIDIA H200"))
    again.resume().wait(10)
    assert again.reason.startswith("this run was judged on no GPU: scripted, here is gpu: NVIDIA H200: start a new run")


def test_a_run_of_another_search_can_be_seen_but_not_gone_on_with(begin):
    store = MemoryStore()
    run, _ = begin(store=store, proposers=(writer(),), budget=Budget(evaluations=6), auto=True)
    run.wait(10)
    events = [one.event for one in run.events()]
    place = next(place for place, event in enumerate(events) if isinstance(event, Asked) and event.brief.id == "b5")
    events[place] = Asked(replace(events[place].brief, kind="crossover"))
    other = MemoryStore()
    other.extend("r1", events)
    again = opened(other, "r1")
    assert len(again.rows()) == len(run.rows())
    again.resume().wait(10)
    assert "made by a version that searches otherwise (from b5 on)" in again.reason


def test_two_who_go_on_with_one_run_do_not_mix(begin, tmp_path):
    first = opened_store = Store(tmp_path)
    run, _ = begin(store=opened_store, proposers=(writer(),))
    run.wait(10)
    script = """
        import sys
        from scripted_fleet import ScriptedFleet, ScriptedProposer, diagnose
        from workbench import evolution
        from workbench.store import Store
        writer = ScriptedProposer(tune="TUNE = {'BLOCK': [64, 128, 256]}", wrong_every=4)
        run = evolution.open_run(Store(sys.argv[1]), "last", proposers=(writer,), fleet=ScriptedFleet, diagnose=diagnose)
        run.step(2).wait(20)
        print(run.state, len(run.rows()))
        run.close()
    """
    assert python(script, tmp_path).communicate(timeout=60)[0].split() == ["waiting", "3"]
    run.step().wait(10)
    assert run.state == "paused" and "another process goes on with this run" in run.reason
    assert [one.seq for one in first.events(run.id)] == list(range(1, len(first.events(run.id)) + 1))


def python(code, *args):
    environment = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{Path.cwd()}"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)], stdout=subprocess.PIPE, env=environment, text=True
    )  # fmt: skip


@pytest.mark.parametrize("delay", [0.1, 0.33])
def test_kill_9_loses_at_most_the_candidate_in_flight(tmp_path, delay):
    script = """
        import sys
        from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose
        from workbench import evolution
        from workbench.brief import Budget
        from workbench.store import Store
        writer = ScriptedProposer(tune="TUNE = {'BLOCK': [64, 128, 256]}", wrong_every=4)
        run = evolution.start(TASK, fleet=lambda: ScriptedFleet(seconds=0.03), proposers=(writer,), diagnose=diagnose, auto=True,
                              store=Store(sys.argv[1]), budget=Budget(evaluations=40), seed=9)
        run.subscribe(lambda one: print(one.seq, one.type, flush=True))
        run.wait()
    """
    process = python(script, tmp_path)
    lines = []
    while not any("Evaluated" in line for line in lines):
        lines.append(process.stdout.readline())
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait(10)
    process.stdout.close()
    seen = [line.split() for line in lines if line.endswith("\n")]

    store = Store(tmp_path)
    events = store.events(store.run("last").id)
    assert len(events) >= max(int(number) for number, _ in seen)  # what was seen is there
    asked = sum(one.type == "Asked" for one in events)
    evaluated = sum(one.type == "Evaluated" for one in events)
    assert asked - evaluated <= 1 and evaluated < 40

    run = opened(store, "last")
    run.resume().wait(30)
    run.close()
    assert run.reason == "budget: 40 of 40 evaluations are used"
    reference = evolution.start(
        TASK, fleet=ScriptedFleet, proposers=(writer(),), diagnose=diagnose, auto=True, budget=Budget(evaluations=40), seed=9
    )
    reference.wait(30)
    reference.close()
    assert gist(run.events()) == gist(reference.events())


def test_a_cell_that_runs_again_stops_its_earlier_run_and_starts_from_its_elites(begin):
    store = MemoryStore()
    first, _ = begin(store=store, cell="cell-1", proposers=(writer(),))
    first.step(6).wait(10)
    best = first.best.candidate.source
    second, _ = begin(store=store, cell="cell-1", cell_source="double(x)", proposers=(writer(),))
    first.wait(10)
    assert (first.state, first.reason) == ("ended", "stopped by the person")
    second.wait(10)
    assert second.candidate("k1").candidate.source == best
    started = second.events()[0].event
    assert isinstance(started, RunStarted) and started.elites_of == first.id and len(started.elites) > 1
    said = [one.event.message for one in second.events() if isinstance(one.event, Noted)]
    assert said == [
        f"the earlier run {first.id} of this cell is stopped",
        f"the best {len(started.elites)} of run {first.id} are judged again first",
    ]
    other, _ = begin(store=store, cell="cell-1", task=replace(TASK, entry="triple"), proposers=(writer(),))
    assert other.events()[0].event.elites == ()  # another op in the same cell starts afresh


def test_elites_of_a_named_run_and_none_at_all(begin):
    store = MemoryStore()
    first, _ = begin(store=store)
    first.step(3).wait(10)
    second, _ = begin(store=store, elites_of=first.id)
    assert second.events()[0].event.elites_of == first.id
    with pytest.raises(NoSuchRunError):
        begin(store=store, elites_of="nonsense")


def test_opening_a_run_that_is_running_here_gives_that_very_one(begin):
    store = MemoryStore()
    run, _ = begin(store=store)
    assert evolution.open_run(store, run.id) is run
    with pytest.raises(NoSuchRunError, match="no run 'x'"):
        evolution.open_run(store, "x")

"""What every store promises: one suite over the database and the one in memory."""

from __future__ import annotations

import pytest
from store_world import STARTED, TASK, turn, whole_run

from workbench.errors import MisuseError, NoSuchRunError, StoreError
from workbench.events import EVENT_TYPES, Acted, Noted, Proposed
from workbench.store import KeptCall, MemoryStore, Store


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        Clock.now += 1
        return Clock.now


@pytest.fixture(params=["database", "memory"])
def store(request, tmp_path):
    made = Store(tmp_path / ".workbench", clock=Clock()) if request.param == "database" else MemoryStore(clock=Clock())
    yield made
    made.close()


def test_events_come_back_as_they_went_in_numbered_without_gaps(store):
    events = whole_run()
    stamps = [store.append("r1", event) for event in events]
    assert [stamped.seq for stamped in stamps] == list(range(1, len(events) + 1))
    assert store.events("r1") == tuple(stamps)
    assert [stamped.event for stamped in store.events("r1")] == events
    assert [stamped.seq for stamped in store.events("r1", after=5)] == list(range(6, len(events) + 1))
    assert {stamped.type for stamped in store.events("r1", types=("Noted", "Proposed"))} == {"Noted", "Proposed"}
    assert [stamped.seq for stamped in store.events("r1", after=3, limit=2)] == [4, 5]


def test_extend_is_one_step(store):
    store.append("r1", STARTED)
    assert [stamped.seq for stamped in store.extend("r1", turn(1))] == [2, 3, 4, 5, 6]
    with pytest.raises(TypeError):
        store.extend("r1", (Noted("kept only with the next"), Noted(object())))  # can't be written
    assert len(store.events("r1")) == 6


def test_runs_are_numbered_apart_and_listed_newest_first(store):
    store.append("r1", STARTED)
    store.append("r2", STARTED)
    store.extend("r1", whole_run()[1:])
    assert store.append("r2", Acted("step")).seq == 2
    second, first = store.runs()
    assert (second.id, first.id) == ("r2", "r1")
    assert (first.name, first.task, first.cell, first.target) == ("softmax", TASK.id, "cell-1", "cuda:90")
    assert (first.candidates, first.evaluations, first.best, first.best_us, first.modelled) == (3, 3, "k3", 9.25, True)
    assert (first.state, first.reason, first.last) == ("waiting", "press Step", len(whole_run()))
    assert first.updated > first.created
    assert "softmax" not in str(second) and "nothing right yet" in str(second) and "best k3 9.25 µs modelled" in str(first)
    assert [run.id for run in store.runs(cell="cell-1")] == ["r2", "r1"] and store.runs(cell="other") == ()


def test_a_run_is_found_by_the_beginning_of_its_id(store):
    for run in ("softmax-a1", "softmax-b2", "gelu-c3"):
        store.append(run, STARTED)
    assert store.run("gelu").id == "gelu-c3" == store.run("last").id
    with pytest.raises(NoSuchRunError, match="several runs 'softmax'"):
        store.run("softmax")
    with pytest.raises(NoSuchRunError, match="no run 'conv'"):
        store.run("conv")


def test_a_run_has_to_be_started(store):
    with pytest.raises(NoSuchRunError):
        store.append("r9", Noted("x"))
    with pytest.raises(NoSuchRunError):
        store.events("r9")
    assert store.runs() == ()


def test_the_former_owner_is_told_when_another_goes_on(store):
    store.append("r1", STARTED, owner="one")
    store.append("r1", Noted("mine"), owner="one")
    store.claim("r1", "two")
    with pytest.raises(StoreError, match="another process goes on"):
        store.append("r1", Noted("lost"), owner="one")
    store.append("r1", Noted("theirs"), owner="two")
    store.append("r1", Noted("anybody's"))
    assert [stamped.event.message for stamped in store.events("r1", after=1)] == ["mine", "theirs", "anybody's"]


def test_clean_removes_what_is_named_or_old_and_nothing_else(store):
    for run in ("r1", "r2", "r3"):
        store.extend(run, whole_run())
    with pytest.raises(MisuseError):
        store.clean()
    with pytest.raises(NoSuchRunError):
        store.clean(("r1", "typo"))
    assert len(store.runs()) == 3
    assert store.clean(("r1",)) == ("r1",)
    assert store.clean(older_than_days=1) == ()
    Clock.now += 2 * 86400
    store.append("r3", Noted("still in use"))
    assert store.clean(older_than_days=1) == ("r2",)
    assert [run.id for run in store.runs()] == ["r3"]
    with pytest.raises(NoSuchRunError):
        store.events("r1")
    store.extend("r1", whole_run())  # its name is free again
    assert [stamped.event for stamped in store.events("r1")] == whole_run()


def test_every_kind_of_event_can_be_kept(store):
    assert {type(event).__name__ for event in whole_run()} <= set(EVENT_TYPES)
    store.extend("r1", whole_run())
    proposed = store.events("r1", types=("Proposed",))[0].event
    assert isinstance(proposed, Proposed) and proposed.proposal.candidate.id == "k1"


def call(key="q1", brief="b1", **more):
    prompt = ({"role": "system", "content": "You write kernels."}, {"role": "user", "content": f"make it fast, {key} “°”"})
    settings = {"max_tokens": 100, "temperature": None, "seed": 7}
    return KeptCall(key, brief, "step", "m", prompt, settings, tokens_in=30, tokens_out=12, seconds=1.5, **({"money": 0.25} | more))


def test_calls_come_back_as_they_went_in_numbered_in_a_run_and_go_with_it(store):
    store.append("r1", STARTED)
    store.append("r2", STARTED)
    kept = [store.keep_call("r1", one) for one in (call(), call("q2", reply="yes"), call("q2", "b2", error="HTTP 500", money=None))]
    store.keep_call("r2", call())
    assert [one.number for one in kept] == [1, 2, 3] and kept[0].time < kept[2].time
    assert store.calls("r1") == tuple(kept) and store.calls("r1", brief="b1") == tuple(kept[:2])
    assert store.calls("r1", key="q2") == tuple(kept[1:]) and store.calls("r1", key="none") == ()
    assert [stamped.type for stamped in store.events("r1")] == ["RunStarted"]
    with pytest.raises(NoSuchRunError):
        store.keep_call("nowhere", call())
    store.clean(["r1"])
    assert store.calls("r1") == () and len(store.calls("r2")) == 1

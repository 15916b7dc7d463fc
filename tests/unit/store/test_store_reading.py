"""Records that are read many at a time are those that `records.decode` makes, to the type of every number."""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench import brief, candidate, events, task
from workbench.bench.sample_run import run_events
from workbench.events import EVENT_TYPES
from workbench.records import decode, dumps
from workbench.store import Store, compact, reading

sys.path.insert(0, str(Path(__file__).parents[1] / "records"))  # what draws records stands beside the codec's tests
from test_records import values_of

SEVERAL = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


def slowly(kind, text):
    return decode(kind, json.loads(text))


@pytest.fixture
def by_the_codec(monkeypatch):
    """As where msgspec is not installed."""
    monkeypatch.setattr(reading, "msgspec", None)
    reading._reader.cache_clear()
    reading._builder.cache_clear()
    yield
    reading._reader.cache_clear()
    reading._builder.cache_clear()


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=EVENT_TYPES)
def test_every_event_has_the_short_way(kind):
    """Else a new field of an unforeseen type would quietly make all runs slow to open."""
    assert reading._reader(kind) is not None and reading._builder(kind, compact.PARTS) is not None


@pytest.mark.parametrize("kind", [kind for kind in EVENT_TYPES.values() if kind not in (events.Asked, events.RunStarted)])
@SEVERAL
@given(data=st.data())
def test_both_ways_make_the_same_record(kind, data):
    record = data.draw(values_of(kind))
    text = dumps(record)
    read = reading.read(kind, text)
    assert read == record
    assert repr(read) == repr(slowly(kind, text))  # 1 is not 1.0 and a tuple no list, where it says so


@SEVERAL
@given(body=values_of(events.Asked) | values_of(events.RunStarted))
def test_what_the_store_takes_apart_is_put_together(body):
    stamped = events.Stamped("r", 1, 0.0, body)
    text, parts = compact.split(stamped)
    data = json.loads(json.dumps(text))
    joined = compact.join(stamped.type, data, lambda digest, kind: reading.read(kind, json.dumps(parts[digest])))
    made = reading.build(type(body), joined, compact.PARTS)
    assert made == body and repr(made) == repr(slowly(type(body), dumps(body)))


def test_a_brief_that_was_stored_whole_is_read_too():
    asked = next(one.event for one in run_events(30) if one.type == "Asked" and one.event.brief.parents)
    data = json.loads(dumps(dataclasses.replace(asked, brief=dataclasses.replace(asked.brief, parameters={"B": (1, 2)}))))
    made = reading.build(
        events.Asked, compact.join("Asked", data, lambda digest, kind: pytest.fail("nothing was taken out")), compact.PARTS
    )
    assert made.brief.parents == asked.brief.parents and made.brief.task == asked.brief.task and made.brief.parameters == {"B": (1, 2)}


LOOSE = {"deep": [1, [2.0, {"x": [True]}], {"$float": "inf"}], "none": None, "empty": [], "object": {"a": {"b": []}}}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (candidate.Candidate, {"id": "k", "backend": "triton", "source": "", "entry": "f", "recipe": LOOSE}),
        (task.Values, {"kind": "scalar", "value": []}), (task.Values, {"kind": "scalar", "value": [[1], {"$float": "-inf"}]}),
        (task.Values, {"kind": "normal", "args": {"mean": 1, "std": {"$float": "inf"}}}),
        (candidate.Timing, {"median_us": 1, "low_us": 2**70, "high_us": 1e308, "p10_us": {"$float": "inf"}, "p90_us": 0, "calls": 2.0}),
        (candidate.Speedup, {"ratio": 1, "low": None, "high": True, "against": 7, "later": [1]}),
        (candidate.Candidate, {"id": "k", "backend": "a later one", "source": "\ud800", "entry": None}),
        (events.StateChanged, {"state": "a later state"}), (brief.Budget, {"evaluations": 2**80, "tune": 1.5}),
        (events.Noted, {"message": "é\u2028\0"}),
    ],
)  # fmt: skip
def test_what_types_do_not_say_is_read_alike(kind, data):
    text = json.dumps(data)
    assert repr(reading.read(kind, text)) == repr(slowly(kind, text))
    assert repr(reading.build(kind, json.loads(text), frozenset())) == repr(slowly(kind, text))


@pytest.mark.parametrize("text", ["", "{", '{"message": 1} x', "[]", "{}", '{"level": "info"}', "null", '{"message": NaN}'])
def test_what_is_wrong_with_a_text_is_told_alike(text):
    def outcome(way):
        try:
            return repr(way(events.Noted, text))
        except Exception as error:
            return type(error), str(error)

    assert outcome(reading.read) == outcome(slowly)


def test_records_that_hold_their_own_kind_go_the_usual_way():
    assert reading._reader(Chain) is None
    assert reading.read(Chain, '{"next": {"next": null}}') == Chain(Chain(None))


@dataclasses.dataclass(frozen=True)
class Chain:
    next: typing.Optional[Chain]  # noqa: UP045


def test_a_whole_run_is_read_alike_with_msgspec_and_without(tmp_path, request):
    made = run_events(60, measured=True, ended=True)
    with closing(Store(tmp_path)) as store:
        store.extend("r1", [one.event for one in made])
        read = store.events("r1")
        request.getfixturevalue("by_the_codec")
        assert reading._reader(events.Noted) is None
        plain = store.events("r1")
    assert [one.event for one in read] == [one.event for one in made]
    assert repr(read) == repr(plain)
    tasks = {id(one.event.brief.task) for one in read if one.type == "Asked"}
    assert len(tasks) == 1  # what events share is one object


def test_short_briefs_lack_parents_and_cards_and_nothing_else(tmp_path):
    made = [one.event for one in run_events(40)]
    with closing(Store(tmp_path)) as store:
        store.extend("r1", made)
        short = [one.event for one in store.events("r1", short=True)]
    asked = [one for one in made if isinstance(one, events.Asked)]
    assert any(one.brief.parents for one in asked) and all(one.brief.cards for one in asked)
    assert short == [
        dataclasses.replace(one, brief=dataclasses.replace(one.brief, parents=(), cards=())) if isinstance(one, events.Asked) else one
        for one in made
    ]

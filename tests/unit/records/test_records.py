"""Every record goes to JSON and back unchanged, whatever values it holds."""

import dataclasses
import enum
import json
import math
import types
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench import brief, candidate, events, graph, task
from workbench.records import decode, digest, dumps, encode, loads

RECORDS = sorted(
    {
        kind
        for module in (brief, candidate, events, graph, task)
        for kind in vars(module).values()
        if dataclasses.is_dataclass(kind) and kind.__module__.startswith("workbench") and kind is not events.Stamped
    },
    key=lambda kind: kind.__name__,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=5,
)


def values_of(kind: typing.Any) -> st.SearchStrategy:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return PLAIN
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(st.none() if arg is type(None) else values_of(arg) for arg in args))
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is not None:
        return st.dictionaries(st.text("xyz", max_size=3), values_of(args[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)})
    return {int: st.integers(-(2**53), 2**53), float: st.floats(allow_nan=False), str: st.text(max_size=8), bool: st.booleans()}[kind]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip(kind, data):
    record = data.draw(values_of(kind))
    assert loads(kind, dumps(record)) == record


def test_non_finite_floats_survive_in_plain_json():
    witness = candidate.Witness(seed=1, input_set="as given", got=math.nan, expected=math.inf, bound=-math.inf)
    text = dumps(witness)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    back = loads(candidate.Witness, text)
    assert math.isnan(back.got) and back.expected == math.inf and back.bound == -math.inf


def test_unknown_fields_are_dropped_and_missing_ones_take_their_defaults():
    assert decode(candidate.Speedup, {"ratio": 2, "low": 1.5, "high": 3, "against": "eager", "later": 1}).ratio == 2.0
    assert decode(candidate.Environment, {}) == candidate.Environment()


def test_what_is_no_record_is_refused():
    with pytest.raises(TypeError, match="can't hold set"):
        encode({"a": {1, 2}})


def test_equal_records_have_equal_digests_whatever_the_order_of_a_mapping():
    one = task.Values("normal", {"mean": 0.0, "std": 1.0})
    other = task.Values("normal", {"std": 1.0, "mean": 0.0})
    assert digest(one) == digest(other) != digest(task.Values("normal", {"std": 2.0, "mean": 0.0}))


def test_every_event_is_stamped_and_decoded_by_its_type():
    assert len(events.EVENT_TYPES) == len(typing.get_args(events.Event))
    stamped = events.Stamped("r1", 3, 12.5, events.Noted("hello"))
    data = json.loads(json.dumps(events.encode_event(stamped)))
    assert data["type"] == "Noted" and events.decode_event(data) == stamped


def test_records_are_frozen():
    for kind in RECORDS:
        assert kind.__dataclass_params__.frozen, kind


def test_numbers_are_read_as_their_field_says_and_unknown_fields_are_dropped():
    data = {"median_us": 3, "low_us": 2.5, "high_us": {"$float": "inf"}, "p10_us": 1, "p90_us": 4, "calls": 7, "later": 1}
    found = decode(candidate.Timing, data)
    assert found == candidate.Timing(3.0, 2.5, math.inf, 1.0, 4.0, calls=7)
    assert [type(value) for value in (found.median_us, found.p10_us, found.calls)] == [float, float, int]
    assert "later" in data  # what is read stays as it was
    assert decode(brief.Budget, {"seconds": 4, "money": None}) == brief.Budget(seconds=4.0)
    assert type(decode(brief.Budget, {"seconds": 4}).seconds) is float

from __future__ import annotations

import json
from array import array

import pytest

from workbench.board.feed import Feed
from workbench.board.packing import pack, pack_snapshot


def unpacked(packed, buffers):
    """What the browser makes of it; `extensions/board/src/packed.ts` is held to the same by the browser's tests."""
    columns = {}
    for name, column in json.loads(json.dumps(packed["fields"])).items():
        match column["kind"]:
            case "same":
                columns[name] = [column["value"]] * packed["count"]
            case "plain":
                columns[name] = column["values"]
            case "numbers":
                columns[name] = [None if value != value else value for value in array("d", buffers[column["buffer"]])]
            case "choice":
                columns[name] = [column["values"][place] for place in array("I", buffers[column["buffer"]])]
    return [{name: values[at] for name, values in columns.items()} for at in range(packed["count"])]


def test_a_run_is_unpacked_as_it_was_and_much_smaller(recorded):
    sent = []
    recorded.play()
    feed = Feed(recorded, sent.append)
    feed.snapshot()
    feed.close()
    packed, buffers = pack_snapshot(sent[0])
    assert packed["type"] == "packed" and packed["header"] == sent[0]["header"]
    for name in ("upserts", "points"):
        assert unpacked(packed[name], buffers) == sent[0][name]
    size = len(json.dumps({name: packed[name] for name in ("upserts", "points")})) + sum(map(len, buffers))
    assert size < 0.6 * len(json.dumps({name: sent[0][name] for name in ("upserts", "points")}))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, None, -0.0, 1e300], [None, None], [None, "a", "a", "a"], [True, False, True, True], [True, 1, 1, 1],
        [{"a": 1}, {"a": 1.5}] * 3, [["k1"], [], ["k1"], [], [], []], [{"a": 1}, {"a": True}] * 3,
        ["é", "\u2028"] * 4, [3, 3, 3], [0, None, 0, 0],
    ],
)  # fmt: skip
def test_every_kind_of_value_comes_back(values):
    buffers = []
    objects = [{"value": value, "other": "same"} for value in values]
    found = unpacked(pack(objects, buffers), buffers)
    assert found == objects
    # What is equal in Python is not so in the browser.
    assert [isinstance(one["value"], bool) for one in found] == [isinstance(value, bool) for value in values]


def test_nothing_is_packed_into_nothing():
    buffers = []
    assert pack([], buffers) == {"count": 0, "fields": {}} and buffers == []

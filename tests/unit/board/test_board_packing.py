from __future__ import annotations

import json
from array import array

import pytest

from workbench.board.feed import Feed
from workbench.board.packing import pack


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
    plain, sent = [], []
    recorded.play()
    for feed in (Feed(recorded, plain.append), Feed(recorded, plain.append, packed=lambda *message: sent.append(message))):
        feed.snapshot()
        feed.close()
    [(packed, buffers)] = sent
    assert packed["type"] == "packed"
    assert {**packed, "type": "snapshot", **{name: unpacked(packed[name], buffers) for name in ("upserts", "points")}} == plain[0]
    size = len(json.dumps({name: packed[name] for name in ("upserts", "points")})) + sum(map(len, buffers))
    assert size < 0.6 * len(json.dumps({name: plain[0][name] for name in ("upserts", "points")}))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, None, -0.0, 1e300], [None, None], [None, "a", "a", "a"], [True, False, True, True], [True, 1, 1, 1],
        [{"a": 1}, {"a": 1.5}] * 3, [["k1"], [], ["k1"], [], [], []], [{"a": 1}, {"a": True}] * 3,
        [["a"], ["a", "b"], ["a"], []] * 2, [[1], [True], [1.5], [1]] * 3, [[["a"]], [["a"]], [[]]] * 3, [["a"], None, ["a"]] * 3,
        ["é", "\u2028"] * 4, [3, 3, 3], [0, None, 0, 0],
    ],
)  # fmt: skip
def test_every_kind_of_value_comes_back(values):
    buffers = []
    found = unpacked(pack({"value": values, "other": ["same"] * len(values)}, buffers), buffers)
    assert found == [{"value": value, "other": "same"} for value in values]
    # What is equal in Python is not so in the browser.
    assert [isinstance(one["value"], bool) for one in found] == [isinstance(value, bool) for value in values]


def test_nothing_is_packed_into_nothing():
    buffers = []
    assert pack({}, buffers) == pack({"value": []}, buffers) == {"count": 0, "fields": {}} and buffers == []

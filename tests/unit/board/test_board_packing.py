from __future__ import annotations

import json
from array import array

import pytest

from workbench.board.feed import Feed
from workbench.board.packing import pack

CODES = {1: "B", 2: "H", 4: "I"}


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
            case "whole":
                columns[name] = list(array(CODES[column["bytes"]], buffers[column["buffer"]]))
            case "choice":
                columns[name] = [column["values"][place] for place in array(CODES[column["bytes"]], buffers[column["buffer"]])]
            case "texts":
                columns[name] = buffers[column["buffer"]].decode().split("\n")
            case "lists":
                columns[name] = [line.split("\t") if line else [] for line in buffers[column["buffer"]].decode().split("\n")]
            case other:
                raise AssertionError(other)
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
        ["é", "\u2028"] * 4, [3, 3, 3], [0, None, 0, 0], ["a", "é\u2028", "\ufeff"], ["a", "b\nc", ""], ["a", "", ""], ["", "a"],
        ["\ud800", "a"],
        [[], ["k1"], ["k1", "k2"]], [[""], [], ["a"]], [["a\tb"], ["c"]], [["a\nb"], ["c"]], [[1], ["a"]], [0, 255], [0, 256], [1, 1 << 16],
        [-1, 1], [1, 1 << 32], [*range(300), *range(300), *range(300)],
    ],
)  # fmt: skip
def test_every_kind_of_value_comes_back(values):
    buffers = []
    found = unpacked(pack({"value": values, "other": ["same"] * len(values)}, buffers), buffers)
    assert found == [{"value": value, "other": "same"} for value in values]
    # What is equal in Python is not so in the browser.
    assert [isinstance(one["value"], bool) for one in found] == [isinstance(value, bool) for value in values]


def test_what_differs_in_each_row_travels_as_bytes():
    names = [f"k{number}" for number in range(70_000)]
    buffers = []
    packed = pack({"id": names, "order": list(range(70_000)), "parents": [[], *([name] for name in names[:-1])]}, buffers)
    assert {name: column["kind"] for name, column in packed["fields"].items()} == {"id": "texts", "order": "whole", "parents": "lists"}
    assert len(json.dumps(packed)) < 300
    assert unpacked(packed, buffers)[-1] == {"id": "k69999", "order": 69_999, "parents": ["k69998"]}


def test_nothing_is_packed_into_nothing():
    buffers = []
    assert pack({}, buffers) == pack({"value": []}, buffers) == {"count": 0, "fields": {}} and buffers == []

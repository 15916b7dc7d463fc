"""Ten thousand rows as columns, for their way to the browser (``extensions/board/src/packed.ts`` unpacks them).

As objects, the rows of a long run repeat each field's name and most of its values ten thousand times: eight megabytes of JSON, which
kernel and browser take most of a second to write and read. As columns with the numbers beside the message they are a tenth of that.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from itertools import chain
from typing import Any

Message = dict[str, Any]
Columns = Mapping[str, list[Any]]
_DOUBLE, _INDEX = "d", "I"
SHARED = 2
"""A value that stands for so many objects, on average, is sent once and named by number."""


def pack_columns(rows: Columns, points: Columns) -> tuple[Message, list[bytes]]:
    """The part of a packed snapshot that is long, and the buffers beside it."""
    buffers: list[bytes] = []
    return {"upserts": pack(rows, buffers), "points": pack(points, buffers)}, buffers


def pack(columns: Columns, buffers: list[bytes]) -> Message:
    """Objects with the same fields, which come as one list a field; what they hold in bytes is added to `buffers`."""
    count = len(next(iter(columns.values()), ()))
    return {"count": count, "fields": {name: _column(values, buffers) for name, values in columns.items()} if count else {}}


def _column(values: list[Any], buffers: list[bytes]) -> Message:
    kinds = set(map(type, values))
    if kinds <= {float, int, type(None)} and kinds != {type(None)}:
        if values.count(values[0]) == len(values):
            return {"kind": "same", "value": values[0]}
        if type(None) in kinds:
            nan = float("nan")
            values = [nan if value is None else value for value in values]
        return _beside("numbers", array(_DOUBLE, values), buffers)
    keys = _keys(values, kinds)
    kept = dict(zip(keys, values, strict=True))
    if len(kept) == 1:
        return {"kind": "same", "value": values[0]}
    if len(kept) * SHARED > len(values):
        return {"kind": "plain", "values": values}
    places = {key: place for place, key in enumerate(kept)}
    return {**_beside("choice", array(_INDEX, map(places.__getitem__, keys)), buffers), "values": list(kept.values())}


def _keys(values: list[Any], kinds: set[type]) -> list[Any]:
    """What tells the values apart: those that are equal in Python and not so in JSON, as 1 and true, by how they read."""
    if kinds <= {str, bool, type(None)}:
        return values
    if kinds == {list} and set(map(type, chain.from_iterable(values))) <= {str}:
        return list(map(tuple, values))
    return list(map(repr, values))


def _beside(kind: str, numbers: array[Any], buffers: list[bytes]) -> Message:
    if sys.byteorder != "little":
        numbers.byteswap()
    buffers.append(numbers.tobytes())
    return {"kind": kind, "buffer": len(buffers) - 1}

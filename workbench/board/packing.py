"""Ten thousand rows as columns, for their way to the browser (``extensions/board/src/packed.ts`` unpacks them).

As objects, the rows of a long run repeat each field's name and most of its values ten thousand times: eight megabytes of JSON, which
kernel and browser take most of a second to write and read. As columns with the numbers beside the message they are a tenth of that.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

Message = dict[str, Any]
_DOUBLE, _INDEX = "d", "I"
SHARED = 2
"""A value that stands for so many objects, on average, is sent once and named by number."""


def pack_snapshot(snapshot: Mapping[str, Any]) -> tuple[Message, list[bytes]]:
    """A snapshot as it travels: the message of type ``packed``, and the buffers beside it."""
    columns, buffers = pack_columns(snapshot["upserts"], snapshot["points"])
    return {**snapshot, **columns, "type": "packed"}, buffers


def pack_columns(rows: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]]) -> tuple[Message, list[bytes]]:
    """The part of a packed snapshot that is long, and its buffers."""
    buffers: list[bytes] = []
    return {"upserts": pack(rows, buffers), "points": pack(points, buffers)}, buffers


def pack(objects: Sequence[Mapping[str, Any]], buffers: list[bytes]) -> Message:
    """Objects with the same fields as columns; what they hold in bytes is added to `buffers`."""
    names = list(objects[0]) if objects else []
    return {"count": len(objects), "fields": {name: _column(list(map(itemgetter(name), objects)), buffers) for name in names}}


def _column(values: list[Any], buffers: list[bytes]) -> Message:
    kinds = set(map(type, values))
    if kinds <= {float, int, type(None)} and kinds != {type(None)}:
        if values.count(values[0]) == len(values):
            return {"kind": "same", "value": values[0]}
        if type(None) in kinds:
            nan = float("nan")
            values = [nan if value is None else value for value in values]
        return _beside("numbers", array(_DOUBLE, values), buffers)
    # Lists and objects, and what is equal in Python and not so in JSON, are told apart by how they read.
    keys = values if kinds <= {str, bool, type(None)} else list(map(repr, values))
    kept = dict(zip(keys, values, strict=True))
    if len(kept) == 1:
        return {"kind": "same", "value": values[0]}
    if len(kept) * SHARED > len(values):
        return {"kind": "plain", "values": values}
    places = {key: place for place, key in enumerate(kept)}
    return {**_beside("choice", array(_INDEX, map(places.__getitem__, keys)), buffers), "values": list(kept.values())}


def _beside(kind: str, numbers: array[Any], buffers: list[bytes]) -> Message:
    if sys.byteorder != "little":
        numbers.byteswap()
    buffers.append(numbers.tobytes())
    return {"kind": kind, "buffer": len(buffers) - 1}

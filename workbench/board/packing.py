"""Ten thousand rows as columns, for their way to the browser (``extensions/board/src/packed.ts`` unpacks them).

As objects, the rows of a long run repeat each field's name and most of its values ten thousand times: eight megabytes of JSON, which
kernel and browser take most of a second to write and read. As columns they are a tenth of that, and nearly all of it is bytes beside the
message, which nobody on the way looks into.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from itertools import chain
from typing import Any

Message = dict[str, Any]
Columns = Mapping[str, list[Any]]
_DOUBLE = "d"
_WHOLE = {"B": 1 << 8, "H": 1 << 16, "I": 1 << 32}
"""Codes of whole numbers, and what does not fit."""
_BETWEEN, _WITHIN = "\n", "\t"
"""What stands between texts, and between the texts of a list."""
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
        if kinds == {int} and min(values) >= 0 and max(values) < _WHOLE["I"]:
            return _whole("whole", values, buffers)
        if type(None) in kinds:
            nan = float("nan")
            values = [nan if value is None else value for value in values]
        return _beside("numbers", array(_DOUBLE, values), buffers)
    keys = _keys(values, kinds)
    kept = dict(zip(keys, values, strict=True))
    if len(kept) == 1:
        return {"kind": "same", "value": values[0]}
    if len(kept) * SHARED > len(values):
        return _texts(values, kinds, buffers) or {"kind": "plain", "values": values}
    places = {key: place for place, key in enumerate(kept)}
    return {**_whole("choice", [places[key] for key in keys], buffers), "values": list(kept.values())}


def _keys(values: list[Any], kinds: set[type]) -> list[Any]:
    """What tells the values apart: those that are equal in Python and not so in JSON, as 1 and true, by how they read."""
    if kinds <= {str, bool, type(None)}:
        return values
    if kinds == {list} and set(map(type, chain.from_iterable(values))) <= {str}:
        return list(map(tuple, values))
    return list(map(repr, values))


def _texts(values: list[Any], kinds: set[type], buffers: list[bytes]) -> Message | None:
    """Texts, or lists of texts, as one; None where they are something else, or hold what stands between them."""
    if kinds == {str}:
        kind, texts = "texts", values
    elif kinds == {list} and all(type(one) is str and one and _WITHIN not in one for one in chain.from_iterable(values)):
        kind, texts = "lists", list(map(_WITHIN.join, values))
    else:
        return None
    joined = _BETWEEN.join(texts)
    if joined.count(_BETWEEN) != len(texts) - 1:
        return None
    try:
        buffers.append(joined.encode())
    except UnicodeEncodeError:  # half a character, which JSON can escape
        return None
    return {"kind": kind, "buffer": len(buffers) - 1}


def _whole(kind: str, values: list[int], buffers: list[bytes]) -> Message:
    code = next(code for code, limit in _WHOLE.items() if max(values) < limit)
    return {**_beside(kind, array(code, values), buffers), "bytes": array(code).itemsize}


def _beside(kind: str, numbers: array[Any], buffers: list[bytes]) -> Message:
    if sys.byteorder != "little":
        numbers.byteswap()
    buffers.append(numbers.tobytes())
    return {"kind": kind, "buffer": len(buffers) - 1}

"""One function each way between records and JSON.

Records are frozen dataclasses. `encode` turns one into plain JSON data, `decode` builds it back from its class, and nothing is
ever pickled. Store, judge, board, notebook and reports all go through these two, so a record reads the same everywhere.

Floats that JSON lacks (NaN, infinities) travel as ``{"$float": "nan"}``. Lists and tuples both become JSON arrays and come
back as tuples, so records hold tuples only.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

R = TypeVar("R")


def encode(value: Any) -> Any:
    """Plain JSON data of a record, or of anything that a record may hold."""
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    raise TypeError(f"a record can't hold {type(value).__name__}")


def decode(kind: type[R], data: Any) -> R:
    """The record of class `kind` that `encode` made `data` from. Fields that `data` lacks take their defaults; unknown ones
    are dropped, so that an older workbench can read a newer store.
    """
    return typing.cast(R, _decode(kind, data))


def dumps(value: Any) -> str:
    """Compact JSON text of a record, keys in field order."""
    return json.dumps(encode(value), separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def loads(kind: type[R], text: str) -> R:
    """The record whose text `dumps` made."""
    return decode(kind, json.loads(text))


def digest(value: Any, length: int = 12) -> str:
    """A short hash of a record's content: equal records have equal digests on every machine."""
    text = json.dumps(encode(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(kind: Any, data: Any) -> Any:
    if isinstance(data, dict) and set(data) == {"$float"}:
        return float(data["$float"])
    origin = typing.get_origin(kind)
    if kind is Any or kind is object:
        return _plain(data)
    if origin in (typing.Union, types.UnionType):
        if data is None:
            return None
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        return _decode(options[0], data) if len(options) == 1 else _plain(data)
    if origin is tuple:
        args = typing.get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], item) for item in data)
        return tuple(_decode(arg, item) for arg, item in zip(args, data, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        args = typing.get_args(kind)
        return {key: _decode(args[1], item) for key, item in data.items()}
    if origin is typing.Literal:
        return data
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        known = {field.name for field in dataclasses.fields(kind)}
        return kind(**{name: _decode(hints[name], item) for name, item in data.items() if name in known})
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return data


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        if set(data) == {"$float"}:
            return float(data["$float"])
        return {key: _plain(item) for key, item in data.items()}
    if isinstance(data, list):
        return tuple(_plain(item) for item in data)
    return data

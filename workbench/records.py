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
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

R = TypeVar("R")

_PLAIN = frozenset({str, int, bool, type(None)})
"""Most of what records hold, looked up before anything is asked of it."""


def encode(value: Any) -> Any:
    """Plain JSON data of a record, or of anything that a record may hold."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is dict:
        return {str(key): item if type(item) in _PLAIN else encode(item) for key, item in value.items()}
    if kind is tuple:
        return [item if type(item) in _PLAIN else encode(item) for item in value]
    names = _names(kind)
    if names is not None:
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return encode(float(value))
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    raise TypeError(f"a record can't hold {type(value).__name__}")


@functools.cache
def _names(kind: type) -> tuple[str, ...] | None:
    """Names of a record's fields; None where it is no record."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def decode(kind: type[R], data: Any) -> R:
    """The record of class `kind` that `encode` made `data` from. Fields that `data` lacks take their defaults; unknown ones
    are dropped, so that an older workbench can read a newer store.
    """
    decoder = _decoder(typing.cast(Any, kind))
    return typing.cast(R, data if decoder is None else decoder(data))


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


Decoder = Callable[[Any], Any]


@functools.cache
def _decoder(kind: Any) -> Decoder | None:
    """What turns JSON data into a value of `kind`; None where the data is the value already. Made once a type: stores are long."""
    if kind is Any or kind is object:
        return _plain
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in args if option is not type(None)]
        inner = _decoder(options[0]) if len(options) == 1 else _plain
        if inner is None or inner is _number:  # which leaves None as it is
            return inner
        return lambda data: None if data is None else inner(data)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            each = _decoder(args[0])
            return tuple if each is None else lambda data: tuple(map(each, data))
        parts = [_decoder(arg) or _same for arg in args]
        return lambda data: tuple(part(item) for part, item in zip(parts, data, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        value = _decoder(args[1]) or _same
        return lambda data: {key: value(item) for key, item in data.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind)
    return _number if kind is float else None


def _record(kind: type) -> Decoder:
    plan: tuple[frozenset[str], tuple[str, ...], tuple[tuple[str, Decoder], ...]] | None = None

    # A store of ten thousand variants holds two hundred thousand records. So what is as it should be, which nearly everything is, is
    # neither copied one by one nor handed to a function of its own.
    def decode_record(data: Any) -> Any:
        nonlocal plan
        if isinstance(data, kind):  # decoded before, where many records share one
            return data
        if plan is None:  # only now: a record may hold its own kind
            plan = _plan(kind)
        known, numbers, others = plan
        values = dict(data) if known.issuperset(data) else {name: item for name, item in data.items() if name in known}
        for name in numbers:
            if type(item := values.get(name)) is not float and item is not None:
                values[name] = _number(item)
        for name, decoder in others:
            if name in values:
                values[name] = decoder(values[name])
        return kind(**values)

    return decode_record


def _plan(kind: type) -> tuple[frozenset[str], tuple[str, ...], tuple[tuple[str, Decoder], ...]]:
    """The fields of a record; those that hold a float or None; and those others that aren't in JSON as they are in the record."""
    hints = typing.get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in dataclasses.fields(typing.cast(Any, kind))}
    numbers = tuple(name for name, decoder in decoders.items() if decoder is _number)
    others = tuple((name, decoder) for name, decoder in decoders.items() if decoder is not None and decoder is not _number)
    return frozenset(decoders), numbers, others


def _same(data: Any) -> Any:
    return data


def _number(data: Any) -> Any:
    if isinstance(data, float):
        return data
    if isinstance(data, dict):
        return float(data["$float"])
    return float(data) if isinstance(data, int) and not isinstance(data, bool) else data


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        if set(data) == {"$float"}:
            return float(data["$float"])
        return {key: _plain(item) for key, item in data.items()}
    if isinstance(data, list):
        return tuple(_plain(item) for item in data)
    return data

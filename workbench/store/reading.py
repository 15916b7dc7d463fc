"""Records from their JSON text, many at a time: what `records.loads` makes, in a sixth of its time.

A run of ten thousand variants is forty thousand events. msgspec parses a text and fills the records in one go. What it is stricter
about than `records.decode` (a float that JSON lacks, a word that a later workbench added), and everything where it is not installed,
goes the usual way; so does what is wrong with a text, with its error.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import operator
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from workbench.records import decode

try:
    import msgspec
except ImportError:  # all is read without it too
    msgspec = None  # type: ignore[assignment]

Change = Callable[[Any], Any]
_REFUSED = (ValueError, RecursionError)
"""What msgspec raises at a text or at data that is not as the types say."""


def read(kind: type, text: str) -> Any:
    """The record of class `kind` whose text `records.dumps` made."""
    made = _reader(kind)
    if made is not None:
        try:
            return made(text)
        except _REFUSED:
            pass
    return decode(kind, parse(text))


def parse(text: str) -> Any:
    """What `json.loads` makes of a text."""
    if msgspec is not None:
        try:
            return msgspec.json.decode(text)
        except _REFUSED:
            pass
    return json.loads(text)


def build(kind: type, data: Any, whole: frozenset[type]) -> Any:
    """What `records.decode` makes of `data`, in which the records of the classes `whole` stand already. Nobody else has `data`."""
    made = _builder(kind, whole)
    if made is not None:
        try:
            return made(data)
        except _REFUSED:
            pass
    return decode(kind, data)


@functools.cache
def _reader(kind: type) -> Change | None:
    return None if msgspec is None or not _same(kind) else _then(msgspec.json.Decoder(kind).decode, _loose(kind))


@functools.cache
def _builder(kind: type, whole: frozenset[type]) -> Change | None:
    return None if msgspec is None or not _same(kind) else _then(functools.partial(msgspec.convert, type=kind), _loose(kind, whole))


def _then(make: Change, change: Change | None) -> Change:
    return make if change is None else lambda data: change(make(data))


@functools.cache
def _same(kind: Any, *within: Any) -> bool:
    """Whether msgspec and `records.decode` mean the same by a type, as they do by all that events hold today."""
    if kind in (Any, object, float, int, bool, str):
        return True
    if kind in within:  # a record that holds its own kind
        return False
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return True
    if origin in (typing.Union, types.UnionType):
        options = [option for option in args if option is not type(None)]
        return len(options) == 1 and _same(options[0], *within)
    if origin is tuple:
        return all(arg is Ellipsis or _same(arg, *within) for arg in args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return args[0] is str and _same(args[1], *within)
    if dataclasses.is_dataclass(kind):
        path: tuple[Any, ...] = (*within, kind)
        return all(_same(hint, *path) for hint in _hints(kind).values())
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


# ---- the parts whose type is Any, which msgspec leaves as JSON has them: lists are tuples in records


@functools.cache
def _loose(kind: Any, whole: frozenset[type] = frozenset()) -> Change | None:
    """What gives the loose parts of a value of this type the form that they have in records; None where it has no such parts."""
    if kind in whole:
        return None
    if kind is Any or kind is object:
        return functools.partial(decode, object)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        parts = [(name, change) for name, hint in _hints(kind).items() if (change := _loose(hint, whole)) is not None]
        return functools.partial(_in_fields, parts) if parts else None
    if origin is typing.Literal or not args:
        return None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return None if (change := _loose(args[1], whole)) is None else functools.partial(_in_values, change)
    if origin is tuple:
        changes = [_loose(arg, whole) for arg in args if arg is not Ellipsis]
        if not any(changes):
            return None
        return functools.partial(_in_items, changes[0] if Ellipsis in args else changes)
    change = next((change for arg in args if (change := _loose(arg, whole)) is not None), None)
    return None if change is None else lambda data: None if data is None else change(data)


def _in_fields(parts: list[tuple[str, Change]], record: Any) -> Any:
    for name, change in parts:
        old = getattr(record, name)
        if type(old) not in _FIRM and (new := change(old)) is not old:
            object.__setattr__(record, name, new)  # it is ours alone until it is handed out
    return record


_FIRM = frozenset({str, int, float, bool, type(None)})


def _in_values(change: Change, data: dict[str, Any]) -> dict[str, Any]:
    for name, item in data.items():
        if type(item) not in _FIRM:
            data[name] = change(item)
    return data


def _in_items(change: Any, data: tuple[Any, ...]) -> tuple[Any, ...]:
    made = (
        tuple(map(change, data)) if callable(change) else tuple(one(item) if one else item for one, item in zip(change, data, strict=True))
    )
    return data if all(map(operator.is_, made, data)) else made


def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}

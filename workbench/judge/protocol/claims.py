"""Whether data from a worker has the form of a record, all the way down: a claim that has not is refused before anybody reads it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from workbench.records import decode

R = TypeVar("R")
_TEXT = 2_000_000


def checked(kind: type[R], data: Any) -> R:
    """The record, where every field of the data has its type.

    Raises:
        ValueError: it has not.
    """
    try:
        record = decode(kind, data)
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a {kind.__name__}") from error
    _check(kind, record, kind.__name__)
    return record


def _check(kind: Any, value: Any, where: str) -> None:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        fits = value in args
    elif origin in (typing.Union, types.UnionType):
        fits = any(_fits(one, value) for one in args)
    elif origin is tuple:
        fits = isinstance(value, tuple)
        if fits and len(args) == 2 and args[1] is Ellipsis:
            for item in value:
                _check(args[0], item, where)
        elif fits:
            fits = len(value) == len(args)
            for one, item in zip(args, value, strict=False):
                _check(one, item, where)
    elif origin is not None and issubclass(origin, Mapping):
        fits = isinstance(value, Mapping)
        for item in value.values() if fits else ():
            _check(args[1], item, where)
    elif dataclasses.is_dataclass(kind):
        fits = isinstance(value, typing.cast(type, kind))
        hints = typing.get_type_hints(kind) if fits else {}
        for name, hint in hints.items():
            _check(hint, getattr(value, name), f"{where}.{name}")
    elif kind is Any:
        fits = value is None or isinstance(value, (bool, int, float, str))
    else:
        fits = _plain(kind, value)
    if not fits:
        raise ValueError(f"{where} is no {kind}")


def _fits(kind: Any, value: Any) -> bool:
    try:
        _check(kind, value, "")
    except ValueError:
        return False
    return True


def _plain(kind: Any, value: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is type(None):
        return value is None
    return isinstance(value, kind) and (not isinstance(value, str) or len(value) <= _TEXT)

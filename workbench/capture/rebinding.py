"""Calling a live function with other objects in the place of those it reads, and leaving the notebook's own alone.

The function is copied, with globals and closure cells of its own, and so is every function of the notebook that it calls: another thread
may be running the originals at the same time.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.capture import importing


def rebind(function: Any, replacements: Mapping[int, Any]) -> Any:
    """A copy of `function` for which each object whose ``id`` is a key is the value instead.

    >>> scale = 2
    >>> rebind(lambda x: x * scale, {id(scale): 10})(1)
    10
    """
    return _Copier(replacements).copy(function)


class _Copier:
    def __init__(self, replacements: Mapping[int, Any]) -> None:
        self.copies: dict[int, Any] = dict(replacements)
        self.namespaces: dict[int, dict[str, Any]] = {}
        self.kept: list[Any] = []

    def copy(self, value: Any) -> Any:
        if id(value) in self.copies:
            return self.copies[id(value)]
        if isinstance(value, types.FunctionType) and not self._of_library(value):
            return self._function(value)
        if type(value) in (list, tuple):
            items = [self.copy(item) for item in value]
            return type(value)(items) if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if type(value) is dict:
            copied = {key: self.copy(item) for key, item in value.items()}
            return copied if any(copied[key] is not value[key] for key in value) else value
        if type(value) is functools.partial:
            return functools.partial(
                self.copy(value.func), *map(self.copy, value.args), **{k: self.copy(v) for k, v in value.keywords.items()}
            )
        owner = getattr(value, "__self__", None)
        if isinstance(value, types.MethodType) and id(owner) in self.copies:
            return getattr(self.copies[id(owner)], value.__name__)
        return value

    def _of_library(self, function: types.FunctionType) -> bool:
        # A wrapper that a library made, such as torch.no_grad()'s, holds the notebook's function in its closure.
        return importing.is_library_file(function.__code__.co_filename) and not function.__closure__

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        library = importing.is_library_file(function.__code__.co_filename)
        namespace = function.__globals__ if library else self.namespaces.setdefault(id(function.__globals__), dict(function.__globals__))
        copied = types.FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, cells or None)
        copied.__kwdefaults__ = function.__kwdefaults__
        self.copies[id(function)] = copied
        self.kept.append(function)
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self.copy(original.cell_contents)
            except ValueError:  # not filled yet
                continue
        if not library:
            for name in set(_names(function.__code__)):
                if name in function.__globals__:
                    namespace[name] = self.copy(function.__globals__[name])
        return copied


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)

"""The arguments of a call, by the op's own parameter names, and how to put other values in their place."""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from workbench.capture import importing
from workbench.capture.collecting import Collector, Item, literal, uncompiled
from workbench.capture.source import Source
from workbench.capture.text import Prelude, unique
from workbench.errors import CaptureError


@dataclass
class Arguments:
    """A call's arguments.

    Attributes:
        leaves: inputs of the Task in order: name and value, tensors and Python values.
        prelude: lines that rebuild from them what the function takes: lists of tensors, dtypes, functions.
        slots: for each parameter: how its value is made from the leaves' values.
    """

    leaves: list[tuple[str, Any]] = field(default_factory=list)
    prelude: list[Prelude] = field(default_factory=list)
    slots: list[tuple[inspect.Parameter, Callable[[Sequence[Any]], Any]]] = field(default_factory=list)

    def call(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments with other values for the leaves."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter, make in self.slots:
            value = make(values)
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        return positional, named


Bound = list[tuple[inspect.Parameter, Any]]


def bind(name: str, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, defaults: bool) -> Bound:
    """Values by parameter, in the signature's order, with the defaults that weren't given if `defaults`.

    Raises:
        CaptureError: the arguments don't fit the signature.
    """
    bound = inspect.signature(function).bind
    try:
        result = bound(*args, **kwargs)
    except TypeError as error:
        raise CaptureError(f"{name} can't take these inputs: {error}") from None
    if defaults:
        result.apply_defaults()
    signature = result.signature.parameters
    return [(signature[key], value) for key, value in result.arguments.items()]


def arrange(name: str, bound: Sequence[tuple[inspect.Parameter, Any]], collector: Collector) -> Arguments:
    """Sorts a call's values into inputs and what the text must rebuild or fix.

    Raises:
        CaptureError: a value is neither a tensor nor a literal; the message names it.
    """
    result = Arguments()
    for parameter, value in bound:
        if parameter.kind is parameter.VAR_POSITIONAL:
            make, text, needs = _sequence(name, parameter.name, tuple(value), result, collector)
            result.prelude.append(Prelude(parameter.name, text, tuple(needs)))
        elif parameter.kind is parameter.VAR_KEYWORD:
            make = _keywords(name, parameter.name, value, result, collector)
        else:
            make = _argument(name, parameter.name, value, result, collector)
        result.slots.append((parameter, make))
    return result


def _argument(op: str, name: str, value: Any, result: Arguments, collector: Collector) -> Callable[[Sequence[Any]], Any]:
    plain = python_value(value)
    if isinstance(value, torch.Tensor) or plain is not None or value is None:
        if isinstance(value, list):
            result.prelude.append(Prelude(name, f"list({name})"))
        return _leaf(name, value, result, list if isinstance(value, list) else None)
    if type(value) in (list, tuple) and any(isinstance(item, torch.Tensor) for item in value):
        make, text, needs = _sequence(op, name, value, result, collector)
        result.prelude.append(Prelude(name, text, tuple(needs)))
        return make
    text, needs = _fixed(op, name, value, result, collector)
    result.prelude.append(Prelude(name, text, tuple(needs)))
    return lambda values: value


def _sequence(
    op: str, name: str, value: list[Any] | tuple[Any, ...], result: Arguments, collector: Collector
) -> tuple[Callable[[Sequence[Any]], Any], str, list[tuple[str, Item]]]:
    """Leaves for the members of a list or tuple, how to make it of them, and the expression that does."""
    makes, names = [], []
    for place, item in enumerate(value):
        member = unique(f"{name}_{place}", [leaf for leaf, _ in result.leaves])
        if not isinstance(item, torch.Tensor) and (python_value(item) is None or isinstance(item, list)) and item is not None:
            raise CaptureError(f"{_input(op, member)} is {_described(item)}: pass tensors and plain values")
        makes.append(_leaf(member, item, result, None))
        names.append(member)
    kind = type(value)
    text = f"[{', '.join(names)}]" if kind is list else f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    return (lambda values: kind(make(values) for make in makes)), text, []


def _keywords(op: str, name: str, value: Mapping[str, Any], result: Arguments, collector: Collector) -> Callable[[Sequence[Any]], Any]:
    makes = {key: _argument(op, unique(key, [leaf for leaf, _ in result.leaves]), item, result, collector) for key, item in value.items()}
    result.prelude.append(Prelude(name, "{" + ", ".join(f"{key!r}: {key}" for key in value) + "}"))
    return lambda values: {key: make(values) for key, make in makes.items()}


def _leaf(name: str, value: Any, result: Arguments, kind: type | None) -> Callable[[Sequence[Any]], Any]:
    place = len(result.leaves)
    result.leaves.append((name, value if isinstance(value, torch.Tensor) else python_value(value)))
    return (lambda values: kind(values[place])) if kind is not None else (lambda values: values[place])


def _fixed(op: str, name: str, value: Any, result: Arguments, collector: Collector) -> tuple[str, list[tuple[str, Item]]]:
    """The expression of an argument that isn't an input but part of the op: a dtype, a device, an activation function."""
    if isinstance(value, torch.device):
        tensor = next((leaf for leaf, item in result.leaves if isinstance(item, torch.Tensor)), None)
        if tensor is not None:
            return f"{tensor}.device", []
    value = uncompiled(value)
    needs: list[tuple[str, Item]] = []
    if isinstance(value, torch.nn.Module) or isinstance(getattr(value, "__self__", None), torch.nn.Module):
        item = collector.add(name, value, op)
        return "<<0>>", [(name, item)]
    try:
        importable = isinstance(value, (types.FunctionType, type)) or importing.import_of(value) is not None
        text = "<<0>>" if importable else literal(value)
        if importable:
            needs.append((name, collector.add(getattr(value, "__name__", name), value, op)))
        elif text is None and type(value) is not dict and not isinstance(value, types.ModuleType):
            text = collector.expression(value, name, op, needs)
    except CaptureError as error:
        raise CaptureError(f"{_input(op, name)} can't be captured: {error}") from None
    if text is None or (isinstance(value, dict) and any(isinstance(item, torch.Tensor) for item in value.values())):
        raise CaptureError(f"{_input(op, name)} is {_described(value)}: pass tensors and plain values, one argument each")
    return text, needs


def python_value(value: Any) -> Any:
    """A value that a Task can hold as it is, lists as tuples; None where it is none (or None itself)."""
    if isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list, torch.Size):
        parts = tuple(None if item is None else python_value(item) for item in value)
        return parts if all(part is not None or item is None for part, item in zip(parts, value, strict=True)) else None
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return python_value(value.item())
    return None


def without_defaults(source: Source) -> Source:
    """The source for reading an entry's needs: its defaults are given as inputs, so what they read isn't needed."""
    node = copy.deepcopy(source.node)
    assert isinstance(node, (ast.FunctionDef, ast.Lambda))
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [ast.Constant(None) if default is not None else None for default in node.args.kw_defaults]
    return Source(source.text, node)


def has_computed_defaults(source: Source) -> bool:
    """Whether a default reads a name, which the reference may not have."""
    assert isinstance(source.node, (ast.FunctionDef, ast.Lambda))
    defaults = [*source.node.args.defaults, *(default for default in source.node.args.kw_defaults if default is not None)]
    return any(isinstance(inner, ast.Name) for default in defaults for inner in ast.walk(default))


def _input(op: str, name: str) -> str:
    return f"input {name} of {op}"


def _described(value: Any) -> str:
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return "a numpy array (use torch.from_numpy)"
    name = type(value).__qualname__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

"""What a function needs from its notebook, as a list of definitions: the first half of writing a reference.

Each object that the function reads, and in turn each that those read, becomes an `Item`. `text.write` then names and orders them.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from workbench.capture import importing
from workbench.capture.source import (
    Source,
    annotation_names,
    free_names,
    generated,
    lookup,
    lookup_in,
    names_written_outside,
    source_of,
)
from workbench.capture.specs import check_tensor
from workbench.errors import CaptureError

LITERAL_CHARACTERS = 20_000
"""A literal longer than this belongs into a tensor."""


@dataclass(eq=False)
class Item:
    """One object of the notebook on its way into the reference.

    Attributes:
        kind: ``import``, ``assign`` (an expression), ``def`` (function or class) or ``tensor``.
        wanted: the name under which it was read.
        text: for import: the statement with ``{name}`` in it; for assign: the expression, in which ``<<k>>`` stands for the name of
            the k-th of `needs`.
        source: for def.
        needs: what it reads in turn: the name that it uses, and the item.
        value: the object itself, kept alive because items are found again by identity.
        reads_tensors: it reads a free tensor, itself or through others, so it must stand where that tensor is a variable.
        name: what the reference calls it; chosen last.
    """

    kind: Literal["import", "assign", "def", "tensor"]
    wanted: str
    value: Any
    text: str = ""
    source: Source | None = None
    needs: list[tuple[str, Item]] = field(default_factory=list)
    reads_tensors: bool = False
    name: str = ""


class Collector:
    """Collects items in the order in which they must be defined."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.modules: dict[str, torch.nn.Module] = {}
        """Modules that are read; where there are any, text can't say it and the op is exported instead."""
        self.namespace: Mapping[str, Any] = {}
        """Globals of the function that is being read."""
        self.future = False
        """Some annotation names something that can't be imported, so annotations must stay unevaluated."""
        self._known: dict[int, Item] = {}

    def tensors(self) -> list[Item]:
        """The free tensors, in the order in which they were met."""
        return [item for item in self.items if item.kind == "tensor"]

    def needs_of(self, function: types.FunctionType, source: Source, name: str) -> list[tuple[str, Item]]:
        """What a function reads from around it."""
        written = names_written_outside(source.node)
        if written:
            raise CaptureError(f"{name} assigns the variable {written[0]} outside itself: an op must not keep state; return it instead")
        needs = []
        for free in free_names(source.node):
            self.namespace = function.__globals__
            try:
                value = lookup(function, free)
            except NameError:
                continue  # in a branch that the call didn't take
            if not importing.is_builtin(free, value):
                needs.append((free, self.add(free, value, name, source)))
        for free in annotation_names(source.node):
            self._annotation(free, function, needs, name)
        return needs

    def add(self, name: str, value: Any, reader: str, source: Source | None = None) -> Item:
        """The item of an object that `reader` reads as `name`.

        Raises:
            CaptureError: it can't be written as text; the message names it.
        """
        value = uncompiled(value)
        known = self._known.get(id(value))
        if known is not None and (known.kind != "assign" or known.wanted == name):
            return known
        if isinstance(value, types.FunctionType) or is_jit_kernel(value):
            return self._function(name, value, reader)
        item = self._make(name, value, reader, source)
        self._known[id(value)] = item
        self.items.append(item)
        return item

    def expression(self, value: Any, name: str, reader: str, needs: list[tuple[str, Item]]) -> str | None:
        """Text that makes the value, with what it needs appended to `needs`; None where there is none."""
        text = literal(value)
        if text is not None:
            return text
        if isinstance(value, enum.Enum):
            return f"{self._part(type(value), reader, needs)}.{value.name}"
        if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
            parts = [self._operand(item, f"{name}_{place}", reader, needs) for place, item in enumerate(value)]
            return f"[{', '.join(parts)}]" if isinstance(value, list) else f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if type(value) is dict and all(literal(key) is not None for key in value):
            return "{" + ", ".join(f"{key!r}: {self._operand(item, f'{name}_{key}', reader, needs)}" for key, item in value.items()) + "}"
        if type(value) is functools.partial:
            parts = [self._operand(item, f"{name}_{place}", reader, needs) for place, item in enumerate((value.func, *value.args))]
            parts += [f"{key}={self._operand(item, f'{name}_{key}', reader, needs)}" for key, item in value.keywords.items()]
            return f"{self._part(functools.partial, reader, needs)}({', '.join(parts)})"
        if type(value) is types.SimpleNamespace:
            fields = [f"{key}={self._operand(item, f'{name}_{key}', reader, needs)}" for key, item in vars(value).items()]
            return f"{self._part(types.SimpleNamespace, reader, needs)}({', '.join(fields)})"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = [f"{key}={self._operand(getattr(value, key), f'{name}_{key}', reader, needs)}" for key in value._fields]
            return f"{self._part(type(value), reader, needs)}({', '.join(fields)})"
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            made = [item for item in dataclasses.fields(value) if item.init]
            fields = [f"{item.name}={self._operand(getattr(value, item.name), f'{name}_{item.name}', reader, needs)}" for item in made]
            return f"{self._part(type(value), reader, needs)}({', '.join(fields)})"
        owner = getattr(value, "__self__", None)
        if isinstance(owner, type) and isinstance(getattr(value, "__name__", None), str):  # a class method, or Function.apply
            return f"{self._part(owner, reader, needs)}.{value.__name__}"
        return None

    def _operand(self, value: Any, name: str, reader: str, needs: list[tuple[str, Item]]) -> str:
        """A part of an expression: written in place if it can be, else an item of its own."""
        value = uncompiled(value)
        if not isinstance(value, (torch.Tensor, torch.nn.Module, types.FunctionType, type)) and importing.import_of(value) is None:
            text = self.expression(value, name, reader, needs)
            if text is not None:
                return text
        return self._part(value, reader, needs, name)

    def _part(self, value: Any, reader: str, needs: list[tuple[str, Item]], name: str = "") -> str:
        wanted = getattr(value, "__name__", "")
        wanted = wanted if isinstance(wanted, str) and wanted.isidentifier() and not isinstance(value, torch.Tensor) else name
        needs.append((wanted, self.add(_identifier(wanted or name), value, reader)))
        return f"<<{len(needs) - 1}>>"

    def _make(self, name: str, value: Any, reader: str, source: Source | None) -> Item:
        if isinstance(value, torch.Tensor):
            check_tensor(name, value, "free tensor")
            return Item("tensor", name, value, reads_tensors=True)
        module = value if isinstance(value, torch.nn.Module) else getattr(value, "__self__", None)
        if isinstance(module, torch.nn.Module):
            self.modules[name] = module
            return Item("tensor", name, value)
        if isinstance(value, types.ModuleType):
            return self._module(name, value, reader, source)
        text = literal(value)
        if text is not None:
            if len(text) > LITERAL_CHARACTERS:
                raise CaptureError(f"{reader} reads {name}, a literal of {len(text)} characters: put it into a tensor")
            return Item("assign", name, value, text)
        if isinstance(value, type) or callable(value):
            found = importing.import_of(value)
            if found is not None:
                return Item("import", name, value, import_line(found, name))
        if isinstance(value, type):
            return self._class(name, value)
        needs: list[tuple[str, Item]] = []
        text = self.expression(value, name, reader, needs)
        if text is None:
            kind = type(value).__qualname__
            raise CaptureError(f"{reader} reads {name}, a {kind}, which can't be captured: pass what it needs of it as arguments")
        return Item("assign", name, value, text, needs=needs)

    def _function(self, name: str, value: Any, reader: str) -> Item:
        wanted, function = name, jit_function(value)
        found = importing.import_of(value)
        if found is not None:
            return self._finish(Item("import", name, value, import_line(found, name)))
        inner, source = defining(function, name)
        wanted = name if isinstance(source.node, ast.Lambda) else source.node.name
        item = Item("def", wanted, value, source=source)
        self._known[id(value)] = item  # before its needs: functions may call each other
        item.needs = self.needs_of(inner, source, wanted)
        self.items.append(item)
        return item

    def _class(self, name: str, value: type) -> Item:
        source = source_of(value, name)
        namespace = next((vars_of for method in vars(value).values() if (vars_of := _globals_of(method)) is not None), None)
        if namespace is None:  # without methods of its own it can only have been read from where its reader is
            namespace = self.namespace
        item = Item("def", value.__name__, value, source=source)
        self._known[id(value)] = item
        for free in free_names(source.node):
            try:
                found = lookup_in(namespace, free)
            except NameError:
                continue
            if not importing.is_builtin(free, found):
                need = self.add(free, found, value.__name__, source)
                if need.kind == "tensor":
                    what = f"the {type(found).__name__} {free}"
                    raise CaptureError(f"class {value.__name__} reads {what} from outside: pass it as an argument")
                item.needs.append((free, need))
        for free in annotation_names(source.node):
            self._annotation(free, namespace, item.needs, value.__name__)
        return item

    def _module(self, name: str, value: types.ModuleType, reader: str, source: Source | None) -> Item:
        if not importing.is_library(value):
            raise CaptureError(
                f"{reader} uses {name}, a module of your own: import the functions that it uses from it (from {value.__name__} import …)"
            )
        line = f"import {value.__name__}" if name == value.__name__ else f"import {value.__name__} as {{name}}"
        if name != value.__name__ and not importing.reimported(value):
            raise CaptureError(f"{reader} uses {name}, the module {value.__name__}, which can't be imported again")
        for inner in _submodules(name, value, source):
            line = f"import {inner}\n{line}"
        return Item("import", name, value, line)

    def _annotation(self, name: str, owner: types.FunctionType | Mapping[str, Any], needs: list[tuple[str, Item]], reader: str) -> None:
        """Imports what an annotation names if a library has it; else annotations stay text."""
        try:
            value = lookup(owner, name) if isinstance(owner, types.FunctionType) else lookup_in(owner, name)
        except NameError:
            self.future = True
            return
        library = isinstance(value, types.ModuleType) and importing.is_library(value)
        if library or (importing.import_of(value) is not None and not importing.is_builtin(name, value)):
            needs.append((name, self.add(name, value, reader)))
        elif not importing.is_builtin(name, value):
            self.future = True

    def _finish(self, item: Item) -> Item:
        self._known[id(item.value)] = item
        self.items.append(item)
        return item


def uncompiled(value: Any) -> Any:
    """What torch.compile was given, for what it returned; anything else as it is."""
    while True:
        inner = getattr(value, "_torchdynamo_orig_callable", None)
        if isinstance(value, types.FunctionType) and inner is not None:
            value = inner
        elif type(value).__name__ == "OptimizedModule" and hasattr(value, "_orig_mod"):
            value = value._orig_mod
        else:
            return value


def is_jit_kernel(value: Any) -> bool:
    """A kernel of Triton, whose function is `.fn`."""
    return type(value).__module__.startswith("triton.") and hasattr(value, "fn")


def jit_function(value: Any) -> types.FunctionType:
    """The Python function in a Triton kernel, or the function itself."""
    while not isinstance(value, types.FunctionType):
        value = value.fn
    return value


def defining(function: types.FunctionType, name: str) -> tuple[types.FunctionType, Source]:
    """The function whose text makes this one, and its source without decorators that only compile it.

    A decorated function is made by the text of the function inside, with its decorators.

    Raises:
        CaptureError: the source can't be found, or a library made the function.
    """
    inner = inspect.unwrap(function)
    if inner is not function and isinstance(inner, types.FunctionType):  # else it wraps a built-in, as IPython's `open` does
        source = without_compiling(source_of(inner, name), inner)
        if getattr(source.node, "decorator_list", ()):
            return inner, source
        if importing.is_library_file(function.__code__.co_filename):
            if "_contextlib" in function.__code__.co_filename:  # torch.no_grad() and its like change no values
                return inner, source
            raise CaptureError(
                f"{name} was made by {function.__globals__.get('__name__')}: write it as a function of your own that calls it"
            )
    if importing.is_library_file(function.__code__.co_filename):
        raise CaptureError(f"{name} was made by {function.__globals__.get('__name__')}: write it as a function of your own that calls it")
    return function, without_compiling(source_of(function, name), function)


def without_compiling(source: Source, function: types.FunctionType) -> Source:
    """The source without ``@torch.compile``, and without ``@staticmethod`` since it moves out of its class."""
    drop = [
        decorator
        for decorator in getattr(source.node, "decorator_list", ())
        if any(_dotted(part, function) in (torch.compile, staticmethod) for part in ast.walk(decorator))
    ]
    if not drop:
        return source
    gone = {line for decorator in drop for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)}
    text = "\n".join(line for number, line in enumerate(source.lines, 1) if number not in gone)
    return Source(text, ast.parse(text).body[0])  # type: ignore[arg-type]


def literal(value: Any) -> str | None:
    """An expression that makes a plain value and needs nothing but ``torch``; None for what isn't plain."""
    if value is None or value is Ellipsis or isinstance(value, (bool, str, bytes)):
        return repr(value) if value is not Ellipsis else "..."
    if isinstance(value, enum.Enum):
        return None
    if type(value) in (int, complex):
        return repr(value)
    if type(value) is float:
        return repr(value) if value == value and abs(value) != float("inf") else f'float("{value}")'
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, (slice, range)):
        parts = [literal(part) for part in (value.start, value.stop, value.step)]
        return None if None in parts else f"{type(value).__name__}({', '.join(str(part) for part in parts)})"
    if isinstance(value, torch.Size):
        return repr(tuple(value))
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"torch.ops.{value}"
    if type(value) in (tuple, list, set, frozenset):
        parts = [literal(item) for item in value]
        if None in parts:
            return None
        inside = ", ".join(str(part) for part in parts)
        if type(value) is tuple:
            return f"({inside}{',' if len(parts) == 1 else ''})"
        if type(value) is list:
            return f"[{inside}]"
        return f"{type(value).__name__}(({inside}{',' if len(parts) == 1 else ''}))"
    if type(value) is dict:
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "shape", None) == ():
        return literal(value.item())
    return None


def import_line(found: tuple[str, str], name: str) -> str:
    """``from m import n as {name}``, short where the name is its own; rewritten once the name is chosen."""
    return f"from {found[0]} import {found[1]} as {{name}}"


def _submodules(name: str, module: types.ModuleType, source: Source | None) -> list[str]:
    """Submodules that a definition reaches by attributes, such as ``scipy.special``; those of torch are there anyway."""
    found: dict[str, None] = {}
    if source is None or module.__name__.split(".")[0] == "torch":
        return []
    for node in ast.walk(source.node):
        chain, value = [], node
        while isinstance(value, ast.Attribute):
            chain.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name) or value.id != name:
            continue
        here: Any = module
        for attribute in reversed(chain):
            here = getattr(here, attribute, None)
            if not isinstance(here, types.ModuleType) or not here.__name__.startswith(module.__name__ + "."):
                break
            found[here.__name__] = None
    return list(found)


def _dotted(node: ast.AST, function: types.FunctionType) -> Any:
    if isinstance(node, ast.Name):
        try:
            return lookup(function, node.id)
        except NameError:
            return None
    if isinstance(node, ast.Attribute):
        return getattr(_dotted(node.value, function), node.attr, None)
    return None


def _globals_of(method: Any) -> Mapping[str, Any] | None:
    if isinstance(method, (staticmethod, classmethod)):
        method = method.__func__
    if isinstance(method, property):
        method = method.fget
    if not isinstance(method, types.FunctionType):
        return None
    method = inspect.unwrap(method)
    return None if generated(method.__code__) else method.__globals__


def _identifier(name: str) -> str:
    cleaned = "".join(character if character.isalnum() or character == "_" else "_" for character in name)
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"

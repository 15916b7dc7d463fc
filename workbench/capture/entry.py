"""Capturing one call: a function, lambda or module with its arguments, to a Task."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from workbench.capture import importing
from workbench.capture.arguments import arrange, bind, has_computed_defaults, without_defaults
from workbench.capture.arrays import refuse_arrays
from workbench.capture.captured import Captured
from workbench.capture.collecting import Collector, defining, uncompiled
from workbench.capture.exporting import Bundle, export_module
from workbench.capture.finishing import Written, finish
from workbench.capture.rebinding import rebind
from workbench.capture.references import describe, flatten
from workbench.capture.source import Source
from workbench.capture.specs import describe_values, dtype_name, version_of
from workbench.capture.text import Entry, unique, write
from workbench.errors import CaptureError
from workbench.task import ITEM_BYTES, Precision, Values


@dataclass
class Call:
    """A call of an op as it was seen.

    Attributes:
        op: what was called, as the notebook has it.
        hint: what the notebook calls it; empty where it has no name.
        value: what it returned, once it `ran`.
        described: values of the tensors that went in, by id, taken before the call because the op may change them.
        versions: of those tensors, before the call.
        autocast: devices for which it was on, with the dtype.
    """

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    hint: str = ""
    value: Any = None
    ran: bool = False
    described: dict[int, tuple[Values, tuple[str, ...]]] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    autocast: tuple[tuple[str, torch.dtype], ...] = ()

    def look(self) -> Call:
        """Takes note of the inputs; call it before the op runs."""
        for tensor in self.tensors():
            if id(tensor) not in self.described and can_describe(tensor):
                self.described[id(tensor)] = describe_values(tensor.detach())
            self.versions[id(tensor)] = version_of(tensor)
        self.autocast = tuple((device, torch.get_autocast_dtype(device)) for device in ("cuda", "cpu") if torch.is_autocast_enabled(device))
        return self

    @property
    def decorators(self) -> tuple[str, ...]:
        """Lines above the reference that repeat the autocast mode of the call."""
        return tuple(f'@torch.autocast("{device}", dtype={dtype})' for device, dtype in self.autocast)

    def under_autocast(self, live: Callable[[list[Any]], list[torch.Tensor]]) -> Callable[[list[Any]], list[torch.Tensor]]:
        """The live op in the autocast mode of the call."""
        for device, dtype in self.autocast:
            live = torch.autocast(device, dtype=dtype)(live)
        return live

    def run(self) -> Call:
        """Runs the op, once."""
        __tracebackhide__ = True
        self.value = self.op(*self.args, **self.kwargs)
        self.ran = True
        return self

    def run_or_refuse(self, name: str) -> Call:
        """Runs the op, once.

        Raises:
            CaptureError: it raises.
        """
        try:
            return self.run()
        except Exception as error:
            raise CaptureError(f"{name} raises on these inputs: {describe(error, _filename(self.op))}") from error

    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]

    def changed(self) -> bool:
        """Whether any input was written to since `look`."""
        return any(version_of(tensor) != self.versions.get(id(tensor), -1) for tensor in self.tensors())


def capture_call(
    op: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    namespace: Mapping[str, Any] | None = None,
    name: str | None = None,
    target: str | None = None,
    precision: Precision = "match",
) -> Captured:
    """Captures ``op(*args, **kwargs)``: runs it once and makes the Task.

    >>> import torch
    >>> captured = capture_call(lambda x: x.exp() + 1, (torch.randn(8, 8),), name="exp1")
    >>> captured.task.entry, captured.task.graph.ops()
    ('exp1', ('exp', 'add'))

    Args:
        op: a function, lambda, partial, method or `torch.nn.Module`, compiled by torch.compile or not.
        namespace: where names were looked up; used to find what the op is called.
        name: of the Task; the op's own by default.
        target: such as ``cuda:90``; this machine's GPU by default.
        precision: the policy that candidates are held to.

    Raises:
        CaptureError: what can't be captured, in one line that names it and the mend.
    """
    call = Call(op, tuple(args), dict(kwargs or {}), hint=_named(op, namespace) or "").look()
    call.run_or_refuse(name or label_of(call))
    return capture(call, name=name, target=target, precision=precision)


def capture(
    call: Call, *, name: str | None = None, target: str | None = None, precision: Precision = "match", shown: Any = None
) -> Captured:
    """Makes the Task of a call."""
    op, args, kwargs = _flattened(call.op, call.args, call.kwargs)
    label = identifier(name or label_of(call))
    refuse_call(call, label)
    if call.ran and not flatten(call.value) and not call.changed():
        returned = type(call.value).__qualname__
        raise CaptureError(f"{label} returns no tensor but {returned}: return the tensors that it computes")
    written = _write(op, args, kwargs, label, call)
    return finish(written, call, name=name or label, target=target, precision=precision, shown=shown)


def refuse_call(call: Call, label: str = "") -> None:
    """Raises where the call was given another library's arrays, which no tensor op can be captured from."""
    op, args, kwargs = _flattened(call.op, call.args, call.kwargs)
    try:
        names = [parameter.name for parameter in inspect.signature(op).parameters.values()]
    except (TypeError, ValueError):  # a builtin has none
        names = []
    refuse_arrays(label or label_of(call), args, kwargs, names)


def label_of(call: Call) -> str:
    """What messages and the reference call the op."""
    op = uncompiled(call.op)
    while isinstance(op, functools.partial):
        op = uncompiled(op.func)
    if isinstance(op, torch.nn.Module):
        return call.hint or _snake(type(op).__name__)
    own = getattr(op, "__name__", "")
    if own and own != "<lambda>" and own.isidentifier() and not isinstance(op, torch.jit.ScriptFunction):
        return own
    return call.hint or "op"


def identifier(name: str) -> str:
    """A valid function name close to the given one."""
    cleaned = "".join(character if character.isalnum() or character == "_" else "_" for character in name)
    return unique(cleaned if cleaned.isidentifier() else f"op_{cleaned}", ("torch",))


def is_callable_object(op: Any) -> bool:
    """Whether a thing is called by its class's ``__call__``, which the notebook wrote, or torch.jit.script."""
    if isinstance(op, torch.jit.ScriptFunction):
        return True
    if isinstance(op, (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, torch.nn.Module, functools.partial)):
        return False
    return isinstance(getattr(type(op), "__call__", None), types.FunctionType) and not importing.is_library_file(  # noqa: B004
        type(op).__call__.__code__.co_filename
    )


def can_describe(tensor: torch.Tensor) -> bool:
    """Whether statistics can be taken; what can't be is refused later, by name."""
    dense = tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested and not tensor.dtype.is_complex
    return dense and tensor.device.type != "meta" and dtype_name(tensor.dtype) in ITEM_BYTES


def _flattened(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The op under torch.compile and partial, with the arguments that the partials hold."""
    op, args, kwargs = uncompiled(op), tuple(args), dict(kwargs)
    while isinstance(op, functools.partial):
        args, kwargs, op = (*op.args, *args), {**op.keywords, **kwargs}, uncompiled(op.func)
    return op, args, kwargs


def _write(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, call: Call) -> Written:
    if isinstance(op, torch.nn.Module):
        exported = export_module(name, op, args, kwargs, call.decorators)
        return Written(name, exported.text, exported.leaves, call.under_autocast(exported.live), unreached=exported.unreached)
    owner = getattr(op, "__self__", None)
    if isinstance(op, types.MethodType) and isinstance(owner, torch.nn.Module):
        return _write_bundle(op, args, kwargs, name, {_snake(type(owner).__name__): owner}, {}, call)
    if isinstance(op, types.FunctionType) and importing.import_of(op) is None:
        return _write_function(op, args, kwargs, name, call)
    if isinstance(op, types.MethodType) and not isinstance(owner, type):
        kind = type(owner).__qualname__
        raise CaptureError(f"{name} is a method of a {kind}, whose state can't be captured: make it a function, or {kind} an nn.Module")
    if is_callable_object(op) and not dataclasses.is_dataclass(op):
        raise CaptureError(f"{name} is an object of type {type(op).__qualname__}: make it a function or an nn.Module")
    return _write_library(op, args, kwargs, name, call)


def _write_function(op: types.FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, call: Call) -> Written:
    collector = Collector()
    inner, source = defining(op, name)
    entry = name if isinstance(source.node, ast.Lambda) else source.node.name
    bound = bind(entry, op, args, kwargs, defaults=True)
    arguments = arrange(entry, bound, collector)
    rewrite = has_computed_defaults(source)
    needs = collector.needs_of(inner, without_defaults(source) if rewrite else source, entry)
    if collector.modules:
        tensors = {item.wanted: item.value for item in collector.tensors() if isinstance(item.value, torch.Tensor)}
        positional, named = arguments.call([value for _, value in arguments.leaves])
        return _write_bundle(op, positional, named, entry, collector.modules, tensors, call)
    text, free = write(
        collector,
        Entry(
            entry, Source(source.text, source.node), needs, [leaf for leaf, _ in arguments.leaves], arguments.prelude,
            decorators=call.decorators, rewrite=rewrite,
        ),
    )  # fmt: skip
    leaves = [(leaf, value, _role(value)) for leaf, value in arguments.leaves]
    leaves += [(item.name, item.value, "parameter" if isinstance(item.value, torch.nn.Parameter) else "buffer") for item in free]
    count = len(arguments.leaves)

    def live(values: list[Any]) -> list[torch.Tensor]:
        replaced = {id(item.value): value for item, value in zip(free, values[count:], strict=True)}
        positional, named = arguments.call(values[:count])
        return flatten((rebind(op, replaced) if replaced else op)(*positional, **named))

    return Written(entry, text, leaves, call.under_autocast(live))


def _write_bundle(
    op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, modules: Mapping[str, torch.nn.Module],
    tensors: Mapping[str, torch.Tensor], call: Call,
) -> Written:  # fmt: skip
    """A function that reads modules: exported together with them."""
    plain = {key: value for key, value in modules.items() if isinstance(value, torch.nn.Module)}
    bundle = Bundle(op, plain, tensors)
    signature = list(inspect.signature(op).parameters.values())
    if not any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in signature):
        bundle.forward = _with_signature(bundle.forward, inspect.signature(op))  # type: ignore[method-assign]
    exported = export_module(name, bundle, args, kwargs, call.decorators)
    return Written(name, exported.text, exported.leaves, call.under_autocast(exported.live), unreached=exported.unreached)


def _with_signature(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward


def _write_library(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, call: Call) -> Written:
    """An op that a library holds, such as ``torch.softmax``: a function of the arguments that were given, which calls it."""
    owner = getattr(op, "__self__", None)
    method = isinstance(owner, torch.Tensor)
    if method:
        args, own = (owner, *args), getattr(op, "__name__", "")
        op = getattr(torch.Tensor, own, op)
    collector = Collector()
    try:
        bound = bind(name, op, args, kwargs, defaults=False)
    except ValueError:  # a builtin has no signature that Python can read
        bound = []
        for place, value in enumerate(args):
            bound.append((inspect.Parameter(_argument_name(place, value), inspect.Parameter.POSITIONAL_ONLY), value))
        bound += [(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY), value) for key, value in kwargs.items()]
    arguments = arrange(name, bound, collector)
    needs = []
    if method:
        callee, skip = f"{arguments.leaves[0][0]}.{own}", 1
    else:
        found = importing.import_of(op)
        skip = 0
        if found is not None and found[0].split(".")[0] == "torch":
            callee = f"{found[0]}.{found[1]}"
        else:
            needs = [(name, collector.add(name, op, "the cell"))]
            callee = "<<0>>"
    parts = []
    for parameter, _ in bound[skip:]:
        prefix = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**", "KEYWORD_ONLY": f"{parameter.name}="}.get(parameter.kind.name, "")
        parts.append(f"{prefix}{parameter.name}")
    entry = Entry(
        name,
        None,
        needs,
        [leaf for leaf, _ in arguments.leaves],
        arguments.prelude,
        call.decorators,
        callee=f"{callee}({', '.join(parts)})",
    )
    text, free = write(collector, entry)
    if free:
        raise CaptureError(f"{name} reads the tensor {free[0].wanted} by a way that can't be captured: pass it as an argument")
    leaves = [(leaf, value, _role(value)) for leaf, value in arguments.leaves]

    def live(values: list[Any]) -> list[torch.Tensor]:
        positional, named = arguments.call(values)
        return flatten(op(*positional, **named))

    return Written(name, text, leaves, call.under_autocast(live))


def _role(value: Any) -> Any:
    return "parameter" if isinstance(value, torch.nn.Parameter) else "input"


def _argument_name(place: int, value: Any) -> str:
    return "xyzuvw"[place] if isinstance(value, torch.Tensor) and place < 6 else f"arg{place}"


def _named(op: Any, namespace: Mapping[str, Any] | None) -> str | None:
    return next((key for key, value in (namespace or {}).items() if value is op and not key.startswith("_")), None)


def _filename(op: Any) -> str | None:
    op = uncompiled(op)
    code = getattr(op, "__code__", None)
    return code.co_filename if code is not None else None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

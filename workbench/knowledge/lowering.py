"""From a Task's ATen graph to a `Program`: views become axes, and each op is lowered by its entry in a table.

Adding an op is one entry in `lower_pointwise` or `lower_reductions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from workbench.graph import Node
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.builder import FLOATS, INTEGERS, Builder, Handle, Unread
from workbench.knowledge.lower_attention import ATTENTION
from workbench.knowledge.lower_pointwise import POINTWISE
from workbench.knowledge.lower_reductions import REDUCTIONS
from workbench.knowledge.lower_windows import WINDOWS
from workbench.knowledge.picks import resolve_picks
from workbench.knowledge.program import Program
from workbench.task import Task

Lowering = Callable[..., Any]


def lower(task: Task) -> Program:
    """The program of a task.

    Raises:
        UnsupportedError: an op, dtype or combination of axes that the experts don't know; the message names it.
    """
    if not task.graph.nodes and not task.graph.outputs:
        raise UnsupportedError("the op has no traced graph")
    try:
        return resolve_picks(_lower(task, Builder(task)))
    except UnsupportedError:
        return resolve_picks(_lower(task, Builder(task, share=False)))


def _lower(task: Task, builder: Builder) -> Program:
    inputs = {spec.name for spec in task.inputs}
    known: dict[str, Any] = {}

    def value(arg: Any) -> Any:
        if isinstance(arg, Mapping) and set(arg) == {"ref"}:
            name = arg["ref"]
            found = known[name] if name in known else builder.load(name)
            if found is None:
                raise UnsupportedError(f"{name}, a result that the experts don't make")
            return found
        if isinstance(arg, (tuple, list)):
            return tuple(value(item) for item in arg)
        return arg

    for node in task.graph.nodes:
        base, overload = _split(node.op)
        if base == "get_attr":
            builder.declare(node)
            continue
        in_place = base.endswith("_") and not base.endswith("__")
        if base in _IGNORED:
            continue
        target = node.args[0]["ref"] if in_place and node.args else ""
        if target in inputs and target not in known:
            raise UnsupportedError(f"{node.op} writes into the argument {target}")
        known[node.name] = _lower_node(builder, node, base.rstrip("_") if in_place else base, overload, value)
        if in_place:
            known[target] = known[node.name]
    if lost := set(task.changes) ^ builder.updated:
        raise UnsupportedError(f"an op that changes its argument {min(lost)}")
    outputs = []
    returned = len(task.outputs) - len(task.changes)  # what it writes into arguments is not returned
    for name, spec in zip(task.graph.outputs[:returned], task.outputs[:returned], strict=True):
        handle = value({"ref": name})
        if not isinstance(handle, Handle):
            raise UnsupportedError(f"{name} is no tensor")
        if handle.flipped or handle.trimmed >= 0 or isinstance(handle.value, Unread):
            raise UnsupportedError("a result that is flipped, or a part of a dimension")
        outputs.append((Handle(handle.value, handle.dims, spec.dtype), spec.strides))
    return builder.finish(outputs)


def _lower_node(builder: Builder, node: Node, base: str, overload: str, value: Callable[[Any], Any]) -> Any:
    args = tuple(value(arg) for arg in node.args)
    kwargs = {name: value(arg) for name, arg in node.kwargs.items()}
    if base == "getitem":
        return args[0][args[1]] if isinstance(args[0], tuple) else args[0]
    lowering: Lowering | None = _VIEWS.get(base) or POINTWISE.get(base) or REDUCTIONS.get(base) or WINDOWS.get(base) or ATTENTION.get(base)
    if lowering is None:
        raise UnsupportedError(f"{node.op} is not an op that the experts know")
    if base not in _SEE_FLIPS and any(isinstance(arg, Handle) and arg.flipped for arg in args):
        raise UnsupportedError(f"{node.op} of a dimension that is flipped")
    if base not in _SEE_TRIMS and any(isinstance(arg, Handle) and arg.trimmed >= 0 for arg in args):
        raise UnsupportedError(f"{node.op} of a part of a dimension")
    if base not in _VIEWS and any(isinstance(arg, Handle) and isinstance(arg.value, Unread) for arg in args):
        raise UnsupportedError(f"{node.op} of a part of a dimension")
    try:
        return lowering(builder, node, *args, **kwargs)
    except TypeError as error:
        # A call with arguments that the lowering doesn't take: an overload or option that nobody has written yet.
        raise UnsupportedError(f"{node.op} with these arguments ({error})") from None


def _split(op: str) -> tuple[str, str]:
    parts = op.split(".")
    if parts[0] == "aten" and len(parts) > 1:
        return parts[1], parts[2] if len(parts) > 2 else ""
    return parts[-1].replace("<built-in function getitem>", "getitem"), ""


_SEE_FLIPS = {"flip", "cumsum", "cumprod"}
"""Ops that may be given a flipped tensor: a scan of one is a scan from the end."""

_SEE_TRIMS = {"cumsum", "cumprod", "cat", "slice", "select"}
"""Ops that may be given a tensor without its last element: put behind a neutral one, its scan is an exclusive scan."""

_IGNORED = {"empty", "sym_size", "_assert_async", "_assert_tensor_metadata", "_assert_scalar"}

# -- views: they change how a handle's axes are arranged, and compute nothing ---------------------------------------------------------


def _same(builder: Builder, node: Node, x: Handle, *_: Any, **__: Any) -> Handle:
    return x


def _view(builder: Builder, node: Node, x: Handle, *_: Any, **__: Any) -> Handle:
    return Handle(x.value, builder.axes.regroup(x.dims, node.shape), x.dtype)


def _expand(builder: Builder, node: Node, x: Handle, *_: Any, **__: Any) -> Handle:
    dims = ((),) * (len(node.shape) - len(x.dims)) + x.dims
    # An expanded dimension gets axes of its own, along which the value is constant.
    grown = tuple(dim or builder.axes.new(size) for dim, size in zip(dims, node.shape, strict=True))
    return Handle(x.value, grown, x.dtype)


def _permute(builder: Builder, node: Node, x: Handle, order: tuple[int, ...]) -> Handle:
    return Handle(x.value, tuple(x.dims[dim % len(x.dims)] for dim in order), x.dtype)


def _t(builder: Builder, node: Node, x: Handle) -> Handle:
    return Handle(x.value, x.dims[::-1], x.dtype)


def _transpose(builder: Builder, node: Node, x: Handle, one: int, other: int) -> Handle:
    order = list(range(len(x.dims)))
    order[one], order[other] = order[other], order[one]
    return _permute(builder, node, x, tuple(order))


def _unsqueeze(builder: Builder, node: Node, x: Handle, dim: int) -> Handle:
    place = dim % (len(x.dims) + 1)
    return Handle(x.value, (*x.dims[:place], (), *x.dims[place:]), x.dtype)


def _squeeze(builder: Builder, node: Node, x: Handle, dim: Any = None) -> Handle:
    chosen = range(len(x.dims)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    places = {place % len(x.dims) for place in chosen} if x.dims else set()
    kept = tuple(axes for place, axes in enumerate(x.dims) if place not in places or axes)
    return Handle(x.value, kept, x.dtype)


def _flip(builder: Builder, node: Node, x: Handle, dims: tuple[int, ...]) -> Handle:
    turned = frozenset(dim % len(x.dims) for dim in dims)
    return Handle(x.value, x.dims, x.dtype, x.flipped ^ turned)


def _slice(builder: Builder, node: Node, x: Handle, dim: int = 0, start: int | None = 0, end: int | None = None, step: int = 1) -> Handle:
    shape = tuple(builder.axes.size(axes) for axes in x.dims)
    if node.shape == shape:
        return x
    place = dim % len(shape)
    if x.trimmed < 0 and step == 1 and not start and node.shape == (*shape[:place], shape[place] - 1, *shape[place + 1 :]):
        return replace(x, trimmed=place)
    return Handle(Unread(), tuple(builder.axes.new(size) for size in node.shape), x.dtype)


def _select(builder: Builder, node: Node, x: Handle, dim: int, place: int) -> Handle:
    return Handle(Unread(), tuple(axes for number, axes in enumerate(x.dims) if number != dim % len(x.dims)), x.dtype)


def _cat(builder: Builder, node: Node, parts: tuple[Handle, ...], dim: int = 0) -> Handle:
    """A neutral element put before a scan that lacks its last one: an exclusive scan."""
    place = dim % len(node.shape)
    first, rest = parts if len(parts) == 2 else (None, None)
    if not isinstance(first, Handle) or not isinstance(rest, Handle) or rest.trimmed != place or first.dims[place]:
        raise UnsupportedError("tensors put one behind the other")
    if not isinstance(first.value, (int, float)):
        raise UnsupportedError("something computed put before a scan")
    return builder.scan_before(replace(rest, trimmed=-1), place, first.value)


def _to_copy(builder: Builder, node: Node, x: Handle, *_: Any, dtype: str | None = None, **__: Any) -> Handle:
    return builder.cast(x, dtype or node.dtype or x.dtype)


def _constant(builder: Builder, node: Node, *args: Any, **_: Any) -> Handle:
    base = node.op.split(".")[1]
    named = {"zeros": 0.0, "zeros_like": 0.0, "new_zeros": 0.0, "ones": 1.0, "ones_like": 1.0, "new_ones": 1.0}
    number = named.get(base, args[-1] if args else None)
    if not isinstance(number, (int, float, bool)):
        raise UnsupportedError(f"{node.op} of something that is no number")
    dtype = node.dtype or "float32"
    number = float(number) if dtype in FLOATS else int(number) if dtype in INTEGERS else bool(number)
    return builder.full(number, node.shape, dtype)


_VIEWS: Mapping[str, Lowering] = {
    **dict.fromkeys(("alias", "detach", "clone", "contiguous", "lift_fresh_copy", "dropout", "lift"), _same),
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "_reshape_alias", "flatten", "unflatten", "view_as"), _view),
    **dict.fromkeys(("_to_copy", "to", "type_as"), _to_copy),
    **dict.fromkeys(
        ("scalar_tensor", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "new_zeros", "new_ones", "new_full"), _constant
    ),
    "expand": _expand, "permute": _permute, "t": _t, "numpy_T": _t, "transpose": _transpose, "unsqueeze": _unsqueeze, "squeeze": _squeeze,
    "slice": _slice, "flip": _flip, "select": _select, "cat": _cat,
}  # fmt: skip

"""Builds a `Program` node by node: the vocabulary that the lowering of each op is written in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.graph import Node
from workbench.knowledge.axes import Axes, Dim, UnsupportedError
from workbench.knowledge.program import Access, Output, Program, Ref, Value, Window
from workbench.task import InputSpec, Task, Values

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
_WIDE = {"float16": "float32", "bfloat16": "float32", "uint8": "int32", "int8": "int32", "int16": "int32"}


def wide(dtype: str) -> str:
    """The dtype in which values of `dtype` are computed: half floats in float32, as torch's own kernels do within one op."""
    return _WIDE.get(dtype, dtype)


@dataclass(frozen=True)
class Handle:
    """A tensor while lowering: a value, or a Python constant, seen through views as `dims`."""

    value: Any
    dims: tuple[Dim, ...] = ()
    dtype: str = "float32"
    flipped: frozenset[int] = frozenset()
    """Dimensions that a view shows from their ends."""
    trimmed: int = -1
    """A dimension whose last element a view leaves out; -1 for none."""


class Unread:
    """The value of a view that is known by its shape alone: nothing may be computed from it."""


class Builder:
    """Collects values, and unifies axes, as the nodes of a graph are lowered in order."""

    def __init__(self, task: Task, share: bool = True) -> None:
        self.axes = Axes()
        self._task, self._share = task, share
        self._loaded: dict[str, Handle] = {}
        self._specs = {spec.name: spec for spec in task.inputs}
        self._values: list[Value] = []
        self._accesses: dict[int, Access] = {}
        self._updates: list[Output] = []
        self._counters: list[str] = []

    # -- leaves -------------------------------------------------------------------------------------------------------------------

    def load(self, name: str) -> Handle:
        """An argument's element. All uses of it walk it in the same way; unless `share` is off: then each has a way of its own, as a
        tensor needs that is added to its own transpose.
        """
        if self._share and name in self._loaded:
            return self._loaded[name]
        spec = self._specs.get(name)
        if spec is None:
            raise UnsupportedError(f"{name} is no argument of the op")
        if not spec.is_tensor:
            dtype = {bool: "bool", int: "int64", float: "float32"}.get(type(spec.values.value))
            if dtype is None:
                raise UnsupportedError(f"{name} is a {type(spec.values.value).__name__}")
            return Handle(self._add(Value(0, "scalar", dtype=dtype, input=name)), (), dtype)
        if spec.dtype not in FLOATS + INTEGERS + ("bool",):
            raise UnsupportedError(f"{name} has dtype {spec.dtype}")
        dims = tuple(self.axes.new(size) for size in spec.shape)
        order, dense = memory_order(spec)
        atoms = tuple(atom for dim in order for atom in dims[dim])
        ref = self._add(Value(0, "load", dtype=wide(spec.dtype), atoms=atoms, input=name, deps=frozenset(atoms)))
        self._accesses[ref.id] = Access(name, dims, order, dense, spec.dtype)
        self._loaded[name] = Handle(ref, dims, spec.dtype)
        return self._loaded[name]

    def declare(self, node: Node) -> None:
        """A tensor that the model holds: it becomes an argument after the task's own."""
        if self._task.format != "model" or node.name in self._specs:
            raise UnsupportedError(f"{node.name}, a tensor that is no argument")
        strides = tuple(math.prod(node.shape[place + 1 :]) for place in range(len(node.shape)))
        self._specs[node.name] = InputSpec(node.name, node.shape, node.dtype, strides, Values("normal"), role="parameter")

    def full(self, number: Any, shape: Sequence[int], dtype: str) -> Handle:
        """A constant tensor: its axes are whatever it is combined with."""
        return Handle(number, tuple(self.axes.new(size) for size in shape), dtype)

    # -- elementwise --------------------------------------------------------------------------------------------------------------

    def map(self, op: str, *args: Any, dtype: str) -> Handle:
        """`op` on every element of the broadcast operands. Float results convert integer operands first."""
        handles = [arg for arg in args if isinstance(arg, Handle)]
        dims = self.broadcast([handle.dims for handle in handles])
        operands = [self._operand(arg, dtype if op not in _KEEPS_TYPES else "") for arg in args]
        return Handle(self._add(Value(0, "map", op, tuple(operands), wide(dtype))), dims, dtype)

    def cast(self, source: Handle, dtype: str) -> Handle:
        """Between floats nothing happens: everything is computed wide, and rounded once, when it is stored."""
        if not isinstance(source.value, Ref):
            number = float(source.value) if dtype in FLOATS else bool(source.value) if dtype == "bool" else int(source.value)
            return replace(source, value=number, dtype=dtype)
        if wide(source.dtype) == wide(dtype):
            if dtype in ("uint8", "int8", "int16") and dtype != source.dtype:
                raise UnsupportedError(f"a cast to {dtype} that wraps around")
            return replace(source, dtype=dtype)
        if dtype == "bool":
            return self.map("ne", source, 0, dtype="bool")
        return Handle(self._add(Value(0, "map", "cast", (source.value,), wide(dtype))), source.dims, dtype)

    def broadcast(self, shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
        """Aligned at the last dimension; a dimension of size 1 takes the other's axes."""
        rank = max((len(dims) for dims in shapes), default=0)
        result: list[Dim] = []
        for place in range(-rank, 0):
            found: Dim = ()
            for dims in shapes:
                if len(dims) < -place or not dims[place]:
                    continue
                if found:
                    self.axes.unify(found, dims[place])
                else:
                    found = dims[place]
            result.append(found)
        return tuple(result)

    # -- along axes ---------------------------------------------------------------------------------------------------------------

    def reduce(self, op: str, source: Handle, dims: Sequence[int], keep: bool, dtype: str = "") -> Handle:
        """`op` (sum, max, min, prod, argmax, argmin) over `dims`; all dimensions if there are none."""
        rank = len(source.dims)
        places = {dim % rank for dim in dims} if rank else set()
        places = places or set(range(rank))
        over = tuple(atom for place in sorted(places) for atom in source.dims[place])
        kept = tuple(() if place in places else dim for place, dim in enumerate(source.dims) if keep or place not in places)
        dtype = dtype or source.dtype
        if not over and op not in ("argmax", "argmin"):
            return Handle(source.value, kept, dtype)
        if not isinstance(source.value, Ref):
            raise UnsupportedError(f"{op} of a constant")
        return Handle(self._add(Value(0, "reduce", op, (source.value,), wide(dtype), over=over)), kept, dtype)

    def mean(self, source: Handle, dims: Sequence[int], keep: bool, correction: float = 0) -> Handle:
        """The sum over the number of elements, less `correction`."""
        total = self.reduce("sum", source, dims, keep)
        return self.map("div", total, self.count(source, dims, correction), dtype=source.dtype)

    def count(self, source: Handle, dims: Sequence[int], correction: float = 0) -> Handle:
        """How many elements a reduction over `dims` takes together, at run time."""
        rank = len(source.dims)
        places = {dim % rank for dim in dims} or set(range(rank))
        over = tuple(atom for place in sorted(places) for atom in source.dims[place])
        size: Any = self._add(Value(0, "size", over=over)) if over else 1
        # Divided by as it is: an integer argument needs no conversion.
        handle = Handle(size, (), "float32")
        return self.map("sub", handle, correction, dtype="float32") if correction else handle

    def scan(self, op: str, source: Handle, dim: int, dtype: str) -> Handle:
        """A running `op` along one dimension."""
        over = source.dims[dim % len(source.dims)]
        if not over:
            return Handle(source.value, source.dims, dtype)
        return Handle(self._add(Value(0, "scan", op, (source.value,), wide(dtype), over=over)), source.dims, dtype)

    def scan_before(self, scanned: Handle, dim: int, first: float) -> Handle:
        """An exclusive scan: what a running sum or product had found before each element, and `first` before the first."""
        value = self._values[scanned.value.id] if isinstance(scanned.value, Ref) else None
        if value is None or value.kind != "scan" or value.op.endswith("_from_end"):
            raise UnsupportedError("a tensor that is moved along a dimension")
        if first != (0 if value.op == "sum" else 1):
            raise UnsupportedError(f"a scan by {value.op} behind {first}")
        place = self.map("sub", self.index(scanned.dims[dim]), 1, dtype="int64")
        moved = self._add(Value(0, "map", "before", (value.args[0], place.value, first), value.dtype, over=value.over))
        return Handle(self._add(replace(value, args=(moved,))), scanned.dims, scanned.dtype)

    def index(self, dim: Dim) -> Handle:
        """The position along a dimension."""
        return Handle(self._add(Value(0, "index", dtype="int32", over=dim)), (dim,), "int64")

    def dot(self, left: Handle, right: Handle, dtype: str, order: Dim = ()) -> Handle:
        """Matrix product over the last dimension of `left` and the last but one of `right`, batched over the others.

        Args:
            order: of the result's atoms in memory, where it is not that of its dimensions.
        """
        if not isinstance(left.value, Ref) or not isinstance(right.value, Ref):
            raise UnsupportedError("a product with a constant")
        *batch, rows, inner = left.dims
        *batch_right, inner_right, columns = right.dims
        for one, other in zip(batch, batch_right, strict=True):
            self.axes.unify(one, other)
        self.axes.unify(inner, inner_right)
        order = order or tuple(atom for dim in (*batch, rows, columns) for atom in dim)
        ref = self._add(Value(0, "dot", args=(left.value, right.value), dtype=wide(dtype), over=inner, atoms=order))
        return Handle(ref, (*batch, rows, columns), dtype)

    def window(self, op: str, source: Handle, window: Window, out: Sequence[int], dtype: str, weight: Handle | None = None) -> Handle:
        """`op` (max, mean, weighted) over windows of an argument's last dimensions, which become `out` long."""
        if not isinstance(source.value, Ref):
            raise UnsupportedError("a window over a constant")
        if min(out) == 1 or any(not dim for dim in source.dims[-len(out) :]):
            raise UnsupportedError("a window over a dimension of one element")
        if source.value.id in self._accesses:
            flat = tuple(atom for dim in source.dims for atom in dim)
            same = self.axes.resolve(flat) == self.axes.resolve(self._values[source.value.id].atoms)
            if not same or not self._accesses[source.value.id].dense:
                raise UnsupportedError("a window over an argument that is stored in another order")
        space = tuple(self.axes.new(size) for size in out)
        over = tuple(atom for dim in space for atom in dim)
        lead = source.dims[: -len(out)]
        atoms = (*(atom for dim in lead for atom in dim), *over)
        args = (source.value,) if weight is None else (source.value, weight.value)
        value = Value(0, "window", op, args, wide(dtype), atoms, over, window=window, dims=source.dims)
        return Handle(self._add(value), (*lead, *space), dtype)

    def update(self, running: Handle, value: Handle) -> None:
        """Writes a new value into a whole argument."""
        name = self._values[running.value.id].input
        self._updates.append(Output(value.value, running.dims, running.dtype, tuple(range(len(running.dims))), into=name))

    def count_call(self, running: Handle) -> None:
        """Adds one to the counter of calls that a batch norm holds beside its running statistics, if it does."""
        counter = self._values[running.value.id].input.removesuffix("running_mean") + "num_batches_tracked"
        if counter in self._specs and counter not in self._counters:
            self._counters.append(counter)

    @property
    def updated(self) -> set[str]:
        """Arguments of the task that are written into."""
        written = {*(output.into for output in self._updates), *self._counters}
        return {spec.name for spec in self._task.inputs if spec.name in written}

    def convolve(self, op: str, source: Handle, weight: Handle, window: Window, groups: int, out: Sequence[int], dtype: str) -> Handle:
        """A convolution, `op` forward or transposed, over the last dimensions of a batch of images, which become `out` long."""
        batch, channels, *_ = source.dims
        made, taken = (weight.dims[0], weight.dims[1]) if op == "forward" else (weight.dims[1], weight.dims[0])
        if groups == 1:
            self.axes.unify(channels, taken)
            parts: tuple[Dim, ...] = (made,)
        elif op == "forward":
            parts = self.axes.regroup((made,), (groups, self.axes.size(made) // groups))
        else:
            parts = (self.axes.new(groups, fixed=True), made)
        if groups > 1:
            self.axes.fixed.update(self.axes.resolve(parts[0]))
        self.axes.fixed.update(atom for dim in weight.dims[2:] for atom in self.axes.resolve(dim))
        space = tuple(self.axes.new(size) for size in out)
        over = tuple(atom for dim in space for atom in dim)
        atoms = (*batch, *(atom for dim in parts for atom in dim), *over)
        value = Value(0, "conv", op, (source.value, weight.value), wide(dtype), atoms, over, window=window, groups=groups, dims=source.dims)
        return Handle(self._add(value), (batch, tuple(atom for dim in parts for atom in dim), *space), dtype)

    # -- the end ------------------------------------------------------------------------------------------------------------------

    def finish(self, outputs: Sequence[tuple[Handle, tuple[int, ...]]]) -> Program:
        """The program of these outputs (each with its strides), equal values merged and unused ones dropped."""
        resolve = self.axes.resolve
        renamed: dict[int, int] = {}
        known: dict[Any, int] = {}
        values: dict[int, Value] = {}
        accesses: dict[int, Access] = {}
        for value in self._values:
            args = tuple(Ref(renamed[arg.id]) if isinstance(arg, Ref) else arg for arg in value.args)
            dims = tuple(resolve(dim) for dim in value.dims)
            value = replace(value, args=args, atoms=resolve(value.atoms), over=resolve(value.over), dims=dims)
            # A bool equals an int in Python; the key must tell them apart.
            key = (
                value.kind,
                value.op,
                tuple((type(arg).__name__, arg) for arg in args),
                value.dtype,
                value.atoms,
                value.over,
                value.input,
                value.window,
                value.groups,
            )
            if key in known:
                renamed[value.id] = known[key]
                continue
            known[key] = renamed[value.id] = value.id
            values[value.id] = replace(value, deps=_deps(value, values))
            if value.id in self._accesses:
                access = self._accesses[value.id]
                accesses[value.id] = replace(access, dims=tuple(resolve(dim) for dim in access.dims))
        results = [self._output(handle, strides, renamed) for handle, strides in outputs]
        results += [
            replace(update, value=Ref(renamed[update.value.id]), dims=tuple(resolve(dim) for dim in update.dims))
            for update in self._updates
        ]
        program = Program(self._task.entry, tuple(values.values()), tuple(results), ())
        used = program.needed([output.value.id for output in results if isinstance(output.value, Ref)])
        atoms = {atom for value in used for atom in (*value.atoms, *value.over)} | {a for output in results for a in output.atoms}
        given = list(self._specs)
        kept = tuple(sorted((accesses[value.id] for value in used if value.kind == "load"), key=lambda access: given.index(access.input)))
        _check(used, kept, atoms, self.axes.fixed)
        sizes = {atom: self.axes.size((atom,)) for atom in sorted(atoms | {a for access in kept for dim in access.dims for a in dim})}
        return replace(
            program,
            values=tuple(used),
            accesses=kept,
            sizes=sizes,
            fixed=frozenset(self.axes.fixed & set(sizes)),
            counters=tuple(self._counters),
        )

    def _output(self, handle: Handle, strides: tuple[int, ...], renamed: dict[int, int]) -> Output:
        value = Ref(renamed[handle.value.id]) if isinstance(handle.value, Ref) else handle.value
        dims = tuple(self.axes.resolve(dim) for dim in handle.dims)
        order = tuple(sorted(range(len(dims)), key=lambda dim: -strides[dim])) if len(strides) == len(dims) else tuple(range(len(dims)))
        same = next((spec.name for spec in self._specs.values() if spec.dtype == handle.dtype and handle.dtype in FLOATS), "")
        return Output(value, dims, handle.dtype, order, same)

    def _operand(self, arg: Any, dtype: str) -> Any:
        if not isinstance(arg, Handle):
            return arg
        if dtype and (dtype in FLOATS) != (arg.dtype in FLOATS):
            return self.cast(arg, dtype).value
        return arg.value

    def _add(self, value: Value) -> Ref:
        value = replace(value, id=len(self._values))
        self._values.append(value)
        return Ref(value.id)


_KEEPS_TYPES = {"where", "eq", "ne", "lt", "le", "gt", "ge", "cast", "isnan", "isinf"}
"""Ops whose result's dtype says nothing of their operands'."""


def memory_order(spec: InputSpec) -> tuple[tuple[int, ...], bool]:
    """Its dimensions from slowest to fastest, and whether they fill the memory without gaps. If not, the order is its own."""
    order = sorted(range(len(spec.shape)), key=lambda dim: (-spec.strides[dim], dim))
    # Dimensions of size 1 may have any stride: they stay where the logical order has them.
    expected = 1
    for dim in reversed([dim for dim in order if spec.shape[dim] > 1]):
        if spec.strides[dim] != expected:
            return tuple(range(len(spec.shape))), False
        expected *= spec.shape[dim]
    long = [dim for dim in order if spec.shape[dim] > 1]
    return tuple(range(len(order)) if long == sorted(long) else order), True


def _deps(value: Value, values: dict[int, Value]) -> frozenset[int]:
    if value.kind in ("load", "window", "conv"):
        return frozenset(value.atoms)
    if value.kind == "index":
        return frozenset(value.over)
    deps = frozenset(atom for ref in value.refs for atom in values[ref].deps)
    if value.kind == "reduce":
        missing = set(value.over) - deps
        if missing:
            raise UnsupportedError(f"{value.op} over a dimension along which nothing changes")
        return deps - frozenset(value.over)
    if value.kind == "dot":
        return deps - frozenset(value.over)
    return deps


def _check(used: Sequence[Value], accesses: Sequence[Access], atoms: set[int], fixed: set[int]) -> None:
    for value in used:
        if len(set(value.atoms)) != len(value.atoms):
            raise UnsupportedError(f"{value.input} is combined with its own transpose after another op")
    known = {atom for access in accesses for dim in access.dims for atom in dim} | fixed
    known |= {atom for value in used if value.kind in ("window", "conv") for atom in value.over}
    if atoms - known:
        raise UnsupportedError("a result with a dimension that no argument has")

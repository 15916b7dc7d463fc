"""An op as loads, elementwise maps and reductions over named axes: what every expert writes its kernel from.

`lowering.lower` makes it from a Task's graph. Views are gone, composite ops (softmax, layer norm, …) are spelt out, and what is
computed twice stands once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.knowledge.axes import Dim

Kind = Literal["load", "scalar", "map", "reduce", "scan", "index", "size", "dot", "given", "gather", "window", "conv"]


@dataclass(frozen=True)
class Window:
    """How a window slides over the last dimensions of its input, which lie at the end of its atoms.

    Attributes:
        kernel, stride, padding, dilation: of each of these dimensions, outermost first.
        divisor: what a mean divides by: 0 for the elements that are really there, else that number.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    divisor: int = 0


@dataclass(frozen=True)
class Ref:
    """The value of that number, where a plain number would be a constant."""

    id: int


@dataclass(frozen=True)
class Value:
    """One step of the computation.

    Attributes:
        kind: load (an input's element), gather (an input's element at the position `args[0]` along `over`, where `args[1]` holds),
            scalar (a Python number that the caller passes), map (elementwise `op`), reduce and scan (`op` along the atoms `over`), index
            (position along `over`), size (elements along `over`), dot (matrix product; `atoms` are its dimensions in their order), given
            (what a kernel gets from elsewhere), window (max, mean or weighted sum of what a window over `args[0]` sees, its weights in
            `args[1]`; `atoms` are its own dimensions, of which those in `over` slide), conv (convolution of `args[0]` by the weights in
            `args[1]`, `op` forward or transposed, its own dimensions as for a window: batch, groups, channels, positions).
        args: operands, `Ref` or Python constants.
        dtype: in which it is computed: float32 for every narrower float.
        atoms: for a load: its dimensions flattened in the order of memory.
        over: for reduce, scan, index, size and gather, in the order of the loop.
        deps: the atoms that its value depends on.
        input: for a load, gather or scalar: which argument.
        window: of a window or conv; `groups`: of a conv; `dims`: the dimensions of what a window or conv slides over.
        before: of a load: it is the element before this one along `over`, which exists from the second on.
    """

    id: int
    kind: Kind
    op: str = ""
    args: tuple[Any, ...] = ()
    dtype: str = "float32"
    atoms: Dim = ()
    over: Dim = ()
    deps: frozenset[int] = frozenset()
    input: str = ""
    window: Window | None = None
    before: bool = False
    groups: int = 1
    dims: tuple[Dim, ...] = ()

    @property
    def refs(self) -> tuple[int, ...]:
        return tuple(arg.id for arg in self.args if isinstance(arg, Ref))


@dataclass(frozen=True)
class Access:
    """One way in which a tensor argument is walked.

    Attributes:
        dims: atoms of each dimension, in the argument's own order.
        order: its dimensions from the slowest to the fastest in memory.
        dense: whether it fills its memory without gaps or repeats in that order; if not, the launcher copies it first.
    """

    input: str
    dims: tuple[Dim, ...]
    order: tuple[int, ...]
    dense: bool = True
    dtype: str = "float32"


@dataclass(frozen=True)
class Output:
    """One tensor to return. `dtype_of` names the argument whose dtype it has; empty where the dtype is the op's own. With `into` it is
    not returned, but written into that argument, such as a batch norm's running mean.
    """

    value: Any
    dims: tuple[Dim, ...]
    dtype: str
    order: tuple[int, ...] = ()
    dtype_of: str = ""
    into: str = ""

    @property
    def atoms(self) -> Dim:
        """Its dimensions flattened in the order of memory."""
        return tuple(atom for dim in self.order for atom in self.dims[dim])


@dataclass(frozen=True)
class Program:
    """The whole op. `sizes` are the captured ones; `fixed` atoms keep theirs whatever the inputs are. `counters` are arguments that each
    call adds one to.
    """

    name: str
    values: tuple[Value, ...]
    outputs: tuple[Output, ...]
    accesses: tuple[Access, ...]
    sizes: Mapping[int, int] = field(default_factory=dict)
    fixed: frozenset[int] = frozenset()
    counters: tuple[str, ...] = ()

    def __getitem__(self, id: int) -> Value:
        return next(value for value in self.values if value.id == id)

    def of_kind(self, *kinds: str) -> tuple[Value, ...]:
        return tuple(value for value in self.values if value.kind in kinds)

    def elements(self, atoms: Iterable[int]) -> int:
        """Captured number of elements of a loop over `atoms`."""
        total = 1
        for atom in atoms:
            total *= self.sizes[atom]
        return total

    def needed(self, targets: Iterable[int], stop: frozenset[int] | set[int] = frozenset()) -> list[Value]:
        """The values that `targets` are made from, themselves included, in order; what is in `stop` is taken as known."""
        wanted = set(targets) - set(stop)
        for value in reversed(self.values):
            if value.id in wanted:
                wanted.update(ref for ref in value.refs if ref not in stop)
        return [value for value in self.values if value.id in wanted]

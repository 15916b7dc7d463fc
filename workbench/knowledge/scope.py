"""Writes the statements of a kernel's body: loads, named intermediate values, and the expressions between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.emit import AND, LIBDEVICE_OPS, TRITON_TYPES, Expr, constant, expression, helper_of
from workbench.knowledge.layout import Layout
from workbench.knowledge.program import Program, Ref, Value

INLINE = 56
"""Longest expression that is put into another one in place of a name."""

_HINTS = {
    "add": "total", "sub": "shifted", "mul": "product", "div": "ratio", "exp": "power", "where": "chosen", "sqrt": "root",
    "rsqrt": "scale", "cast": "value", "at_least": "floored", "at_most": "capped", "sigmoid": "gate", "abs": "size", "sum": "total",
    "max": "peak", "min": "least", "prod": "product", "argmax": "best", "argmin": "best", "neg": "negative", "log": "logarithm",
    "inside": "inside", "eq": "equal", "ne": "differs", "lt": "below", "gt": "above", "le": "within", "ge": "within", "logical_not": "off",
    "logical_and": "both", "logical_or": "either", "maximum": "larger", "minimum": "smaller", "tanh": "squashed",
}  # fmt: skip


class Names:
    """Gives out variable names, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken) | {"tl", "triton", "torch", "libdevice", "tanh", "log1p", "expm1"}

    def new(self, hint: str) -> str:
        name, count = hint, 2
        while name in self._taken:
            name, count = f"{hint}_{count}", count + 1
        self._taken.add(name)
        return name

    def copy(self) -> Names:
        return Names(self._taken)


@dataclass
class Needs:
    """What the kernels of a module turn out to use, for its head."""

    helpers: set[str] = field(default_factory=set)
    libdevice: bool = False


@dataclass
class Scope:
    """A stretch of straight code inside a kernel.

    Attributes:
        mask: the condition under which an element that depends on these atoms exists; empty where it always does.
        pads: what a load gives where its mask is false, per load.
        reduce: text of a reduction of an expression; only for scopes that hold whole reduced axes.
        eviction: cache hint of a load, or empty.
        picked: offset of an element of a gather at a position, given as text.
        env: what is known already: inherited from enclosing scopes, and grown by `compute`.
    """

    program: Program
    layout: Layout
    names: Names
    needs: Needs
    mask: Callable[[frozenset[int]], str]
    pads: Mapping[int, float]
    reduce: Callable[[Value, Expr], Expr] | None = None
    eviction: Callable[[Value], str] = lambda value: ""
    env: dict[int, Expr] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    indexes: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    sizes: Callable[[tuple[int, ...]], str] = lambda atoms: "N"
    picked: Callable[[Scope, Value, str], str] = lambda scope, value, position: "0"

    def inner(self, **changes: Any) -> Scope:
        """A scope nested in this one: it sees these names, and its own stay inside."""
        settings = {name: getattr(self, name) for name in self.__dataclass_fields__} | {"env": dict(self.env), "lines": []}
        return Scope(**(settings | changes))

    def operand(self, arg: Any, dtype: str = "") -> Expr:
        return self.env[arg.id] if isinstance(arg, Ref) else constant(arg, dtype)

    def compute(self, targets: Iterable[int], name_all: bool = False) -> None:
        """Writes what is needed for `targets` and not known yet. Short single-use expressions are not given names; with `name_all`
        the targets themselves are.
        """
        targets = list(targets)
        wanted = self.program.needed(targets, stop=set(self.env))
        uses = Counter(ref for value in wanted for ref in value.refs)
        for target in targets:
            uses[target] += 2 if name_all else 1
        # Loads first: all are on their way before the first one is waited for. Then what picked elements need, and they.
        picked = {value.id for value in self.program.needed([v.id for v in wanted if v.kind == "gather"], stop=set(self.env))}
        for value in sorted(wanted, key=lambda value: 0 if value.kind == "load" else 1 if value.id in picked else 2):
            self._write(value, uses[value.id])

    def assign(self, hint: str, text: str) -> Expr:
        """Names an expression."""
        name = self.names.new(hint)
        self.lines.append(f"{name} = {text}")
        return Expr(name)

    def _write(self, value: Value, uses: int) -> None:
        if value.kind == "load":
            self.env[value.id] = (
                self.load_before(value) if value.before else self.assign(value.input, self.load(value, self.layout.offset(value.atoms)))
            )
        elif value.kind == "gather":
            offset = self.picked(self, value, self.operand(value.args[0]).text)
            self.env[value.id] = self.assign(f"picked_{value.input}", self.load(value, offset, self.operand(value.args[1]).at(AND)))
        elif value.kind == "scalar":
            self.env[value.id] = Expr(value.input)
        elif value.kind == "size":
            self.env[value.id] = Expr(self.sizes(value.over))
        elif value.kind == "index":
            self.env[value.id] = Expr(self.indexes[value.over])
        elif value.kind in ("reduce", "scan"):
            assert self.reduce is not None, "a reduction outside of its scope"
            self.env[value.id] = self.assign(_HINTS.get(value.op, value.op), self.reduce(value, self.operand(value.args[0])).text)
        elif value.kind == "map":
            operand_dtype = _operand_dtype(self.program, value)
            result = expression(value.op, [self.operand(arg, operand_dtype) for arg in value.args], value.dtype)
            if helper := helper_of(value.op):
                self.needs.helpers.add(helper)
            self.needs.libdevice |= value.op in LIBDEVICE_OPS
            inline = (uses == 1 and len(result.text) <= INLINE) or value.op == "neg"
            self.env[value.id] = result if inline else self.assign(_hint(self.program, value), result.text)
        else:
            raise UnsupportedError(f"a {value.kind} inside of another kernel")

    def load_before(self, value: Value) -> Expr:
        """The element before this one along an axis of the layout; what is there before the first is never looked at."""
        axis = next((axis for axis in self.layout.axes if axis.atoms == value.over), None)
        if axis is None or axis.is_split:
            raise UnsupportedError("the element before along a dimension that is cut in parts")
        before = Layout(tuple(replace(other, name=f"({axis.name} - 1)") if other is axis else other for other in self.layout.axes))
        return self.assign(f"{value.input}_before", self.load(value, before.offset(value.atoms), f"({axis.name} > 0)"))

    def load(self, value: Value, offset: str, only: str = "") -> str:
        """Text of a load, widened to the dtype in which it is computed with; `only` where that condition holds."""
        pointer = f"{value.input}_ptr" + (f" + {offset}" if offset != "0" else "")
        options = ""
        masks = [mask for mask in (self.mask(value.deps), only) if mask]
        if mask := f"({masks[0]}) & {masks[1]}" if len(masks) == 2 else "".join(masks):
            pad = self.pads.get(value.id, 0.0)
            options = f", mask={mask}, other={constant(pad if value.dtype.startswith('float') else _whole(pad, value.dtype)).text}"
        if policy := self.eviction(value):
            options += f', eviction_policy="{policy}"'
        narrow = value.dtype in ("float32", "float64", "int32")
        return f"tl.load({pointer}{options})" + (f".to({TRITON_TYPES[value.dtype]})" if narrow else "")


def _whole(pad: float, dtype: str) -> int:
    if pad in (float("inf"), float("-inf")):
        bits = 63 if dtype == "int64" else 31
        return -(2**bits) if pad < 0 else 2**bits - 1
    return int(pad)


def _operand_dtype(program: Program, value: Value) -> str:
    """The dtype in which an op's constants are written: that of its result, or of its operands where the result is a truth value."""
    if value.dtype != "bool":
        return value.dtype
    return next((program[ref].dtype for ref in value.refs if program[ref].dtype != "bool"), "")


def _hint(program: Program, value: Value) -> str:
    if value.op == "mul" and len(set(value.args)) == 1 and len(value.args) == 2:
        return "square"
    if value.op == "sub" and isinstance(value.args[1], Ref) and _is_mean(program, program[value.args[1].id]):
        return "centred"
    if _is_mean(program, value):
        inner = program[program[value.refs[0]].refs[0]]
        return "mean_square" if _hint(program, inner) == "square" else "mean"
    return _HINTS.get(value.op, value.op)


def _is_mean(program: Program, value: Value) -> bool:
    if value.op != "div" or len(value.refs) != 2:
        return False
    return program[value.refs[0]].op == "sum" and program[value.refs[1]].kind == "size"

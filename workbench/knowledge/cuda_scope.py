"""Writes the statements of a CUDA kernel's body: named values and the expressions between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.cuda_emit import CExpr, c_constant, c_expression, c_type
from workbench.knowledge.program import Program, Ref, Value
from workbench.knowledge.scope import Names
from workbench.knowledge.scope import _hint as hint
from workbench.knowledge.scope import _operand_dtype as operand_dtype

INLINE = 48
"""Longest expression that is put into another one in place of a name."""

_RESERVED = (
    "float", "double", "int", "long", "short", "char", "bool", "unsigned", "signed", "void", "const", "auto", "if", "else", "for",
    "while", "do", "switch", "case", "default", "return", "break", "continue", "struct", "class", "template", "typename", "using",
    "namespace", "static", "extern", "inline", "volatile", "true", "false", "new", "delete", "this", "operator", "public", "private",
    "sizeof", "alignas", "min", "max", "x", "y", "z", "w", "row", "col", "lane", "at", "up", "put", "fetch", "Pack", "Word", "Down",
    "Sum", "Prod", "Max", "Min", "again", "take", "fast_exp", "exp_below", "Extreme", "further", "fresh", "comes_last", "across",
    "absolute", "half", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "exp", "log", "sqrt",
    "sin", "cos", "tan", "pow", "floor", "ceil", "abs", "round",
)  # fmt: skip


def c_names(taken: Iterable[str] = ()) -> Names:
    """Variable names of a kernel, each given out once."""
    return Names({*taken, *_RESERVED})


@dataclass
class CudaScope:
    """A stretch of straight code.

    Attributes:
        source: text of a value that is no map: a load, gather, index, size or scalar; None where it can't be had here.
        env: what is known already.
        special: another spelling of a map, where it has one here.
    """

    program: Program
    names: Names
    source: Callable[[Value], CExpr | None]
    env: dict[int, CExpr] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    special: Callable[[Value], CExpr | None] = lambda value: None

    def inner(self) -> CudaScope:
        """A scope nested in this one: it sees these names, and its own stay inside."""
        return CudaScope(self.program, self.names.copy(), self.source, dict(self.env))

    def operand(self, arg: Any, dtype: str = "") -> CExpr:
        """An argument of a value, or a value itself."""
        return self.env[arg.id] if isinstance(arg, Ref) else c_constant(arg, dtype)

    def compute(self, targets: Iterable[int], name_all: bool = False) -> None:
        """Writes what is needed for `targets` and not known yet. With `name_all` the targets themselves get names."""
        targets = list(targets)
        wanted = self.program.needed(targets, stop=set(self.env))
        uses = Counter(ref for value in wanted for ref in value.refs)
        for target in targets:
            uses[target] += 2 if name_all else 1
        for value in wanted:
            self._write(value, uses[value.id])

    def assign(self, name: str, dtype: str, text: str) -> CExpr:
        """Names an expression."""
        fresh = self.names.new(name)
        self.lines.append(f"const {c_type(dtype)} {fresh} = {text};")
        return CExpr(fresh)

    def _write(self, value: Value, uses: int) -> None:
        if value.kind == "map":
            dtype = operand_dtype(self.program, value)
            spelt = dtype if value.op not in ("cast", "where") else value.dtype
            result = self.special(value) or c_expression(value.op, [self.operand(arg, dtype) for arg in value.args], spelt)
            inline = (uses == 1 and len(result.text) <= INLINE) or value.op == "neg"
            self.env[value.id] = result if inline else self.assign(hint(self.program, value), value.dtype, result.text)
            return
        found = self.source(value)
        if found is None:
            raise UnsupportedError(f"a {value.kind} in this place of a CUDA kernel")
        plain = value.kind in ("size", "index", "scalar") or uses <= 1
        self.env[value.id] = found if plain else self.assign(value.input or value.kind, value.dtype, found.text)


def indented(lines: Sequence[str]) -> list[str]:
    """One step to the right; directives stay where they are."""
    return [f"  {line}" if not line.startswith("#") else line for line in lines]

"""Rewrites a kernel's Python so that plain Python runs it as Triton's compiler would read it.

Where Python and Triton's language differ:

- a number that is assigned stays a constant (``HALF = BLOCK // 2`` can shape a tile) and yet has a tensor's methods; a variable that a
  loop carries is a tensor from the loop's start on,
- ``and``, ``or`` and ``not`` work elementwise on blocks, and so do ``min`` and ``max``,
- the variable of a ``range`` loop has a tensor's methods.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from workbench.judge.emulation._mended import Now


class _Number:
    """A Python number with a tensor's methods: what Triton calls a constexpr that became a scalar."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(interpreter.interpreter_semantic.to_tensor(plain(self)), name)


class Whole(_Number, int):
    """An int in a kernel."""


class Real(_Number, float):
    """A float in a kernel."""


def plain(value: Any) -> Any:
    """The Python number behind a `Whole` or `Real`; anything else as it is."""
    if isinstance(value, Whole):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def assigned(value: Any) -> Any:
    """What a name is bound to by ``name = value``."""
    if isinstance(value, tl.constexpr):
        value = value.value
    kind = type(value)
    if kind is int:
        return Whole(value)
    if kind is float:
        return Real(value)
    if kind is tuple:
        return tuple(assigned(item) for item in value)
    return value


def carried(value: Any) -> Any:
    """What a name that a loop assigns holds when the loop starts: numbers are tensors from here on."""
    if isinstance(value, (Whole, Real)) or type(value) in (int, float):
        return interpreter.interpreter_semantic.to_tensor(plain(value))
    return value


def counted(*bounds: Any, **options: Any) -> Iterator[Whole]:
    """``range`` of a kernel."""
    for index in range(*(int(bound) for bound in bounds), **{name: int(value) for name, value in options.items() if name == "step"}):
        Now.watch.waited()
        yield Whole(index)


def both(*terms: Callable[[], Any]) -> Any:
    """``a and b``: elementwise where a block takes part, with Python's short cut before that."""
    return _chain(terms, "logical_and", stop=False)


def either(*terms: Callable[[], Any]) -> Any:
    """``a or b``."""
    return _chain(terms, "logical_or", stop=True)


def _chain(terms: Iterable[Callable[[], Any]], method: str, *, stop: bool) -> Any:
    result: Any = None
    for number, term in enumerate(terms):
        value = term()
        if number == 0:
            result = value
        elif _is_block(result) or _is_block(value):
            left = interpreter.interpreter_semantic.to_tensor(result)
            result = getattr(left, method)(interpreter.interpreter_semantic.to_tensor(value))
        else:
            result = value
        if not _is_block(result) and bool(result) is stop:
            return result
    return result


def negated(value: Any) -> Any:
    """``not a``."""
    return interpreter.interpreter_semantic.not_(value) if _is_block(value) else not value


def least(*values: Any) -> Any:
    """``min`` of a kernel."""
    return _fold(values, min, tl.minimum)


def most(*values: Any) -> Any:
    """``max`` of a kernel."""
    return _fold(values, max, tl.maximum)


def _fold(values: tuple[Any, ...], python: Callable[..., Any], triton: Callable[..., Any]) -> Any:
    if len(values) == 1 or not any(isinstance(value, tl.tensor) for value in values):
        return python(*values)
    result = values[0]
    for value in values[1:]:
        result = triton(result, value)
    return result


def _is_block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_block()


HELPERS: dict[str, Any] = {
    "__kw_assigned": assigned, "__kw_carried": carried, "__kw_range": counted, "__kw_and": both, "__kw_or": either, "__kw_not": negated,
    "__kw_min": least, "__kw_max": most,
}  # fmt: skip
"""What rewritten kernels call; put into their globals. The names start with underscores that no kernel uses."""

_CALLS = {"range": "__kw_range", "min": "__kw_min", "max": "__kw_max"}


class Transformer(ast.NodeTransformer):
    """The rewriting of one kernel.

    Args:
        shadowed: names that mean something else in the kernel's module, so that its ``max`` is not ours.
    """

    def __init__(self, shadowed: Container[str] = ()) -> None:
        self.shadowed = shadowed

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call("__kw_assigned", node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return ast.Assign([node.target], _call("__kw_assigned", value), lineno=node.lineno)

    def visit_For(self, node: ast.For) -> Any:
        static = isinstance(node.iter, ast.Call) and "static_range" in ast.unparse(node.iter.func)
        names = [] if static else sorted(_stored(node.body))
        self.generic_visit(node)
        return [*_carry(names, node), node]

    def visit_While(self, node: ast.While) -> Any:
        names = sorted(_stored(node.body))
        self.generic_visit(node)
        return [*_carry(names, node), node]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        terms: list[ast.expr] = [ast.Lambda(nothing, value) for value in node.values]
        return _call("__kw_and" if isinstance(node.op, ast.And) else "__kw_or", *terms)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("__kw_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _CALLS and node.func.id not in self.shadowed:
            node.func = ast.Name(_CALLS[node.func.id], ast.Load())
        return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _carry(names: Iterable[str], loop: ast.stmt) -> list[ast.stmt]:
    """``if "x" in locals(): x = carried(x)`` for each name, before the loop."""
    made: list[ast.stmt] = []
    for name in names:
        known = ast.Compare(ast.Constant(name), [ast.In()], [_call("locals")])
        bind = ast.Assign([ast.Name(name, ast.Store())], _call("__kw_carried", ast.Name(name, ast.Load())), lineno=loop.lineno)
        made.append(ast.If(known, [bind], []))
    return made


def _stored(body: Iterable[ast.stmt]) -> set[str]:
    """Names that the statements assign, without the variables of loops in them."""
    found = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
    return found

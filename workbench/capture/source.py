"""Where a function's or class's text is, and which names it takes from around it."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import symtable
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.capture import importing
from workbench.errors import CaptureError

Def = ast.FunctionDef | ast.Lambda | ast.ClassDef


@dataclass(frozen=True)
class Source:
    """The text of one definition, moved to the left margin, and its syntax tree at those positions.

    Attributes:
        text: with its decorators. Of a lambda: the expression alone.
        node: the definition in ``ast.parse(text)``.
    """

    text: str
    node: Def

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def segment(self, node: ast.AST) -> str:
        """The text of a node inside the definition."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)


def source_of(thing: types.FunctionType | type, name: str) -> Source:
    """The source of a Python function, lambda or class.

    Raises:
        CaptureError: it can't be found, or it is async or a generator.
    """
    if isinstance(thing, type):
        return _class_source(thing, name)
    code = thing.__code__
    flags = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    if code.co_flags & flags:
        raise CaptureError(f"{name} is async or a generator: give a plain function that returns tensors")
    text, tree = _parsed(code.co_filename, thing.__globals__)
    if tree is not None:
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef) or not isinstance(node, (ast.FunctionDef, ast.Lambda)):
                continue
            if _is_code_of(node, code):
                return _cut(text, node)
    raise CaptureError(f"the source of {name} can't be found: define it in a cell or a file, not by exec or at a prompt")


def free_names(node: Def) -> tuple[str, ...]:
    """Names that a definition reads from outside, in order of appearance; names that only its annotations read are left out."""
    return _outer_names(ast.unparse(_without_annotations(node)))


def annotation_names(node: Def) -> tuple[str, ...]:
    """Names that only the annotations read."""
    needed = set(free_names(node))
    return tuple(name for name in _outer_names(ast.unparse(node)) if name not in needed)


def module_names(text: str) -> tuple[str, ...]:
    """Names that a module's text reads and doesn't define itself."""
    return _outer_names(text)


def local_names(node: Def) -> frozenset[str]:
    """Names that a definition binds in itself: parameters, variables, inner functions, inner imports."""
    return frozenset(name for table in _tables(_symbols(ast.unparse(node)), skip_top=True) for name in _bound(table))


def names_written_outside(node: Def) -> tuple[str, ...]:
    """Names outside itself that a definition assigns, by ``global`` or ``nonlocal``."""
    found = [name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names]
    try:
        _symbols(ast.unparse(node))
    except SyntaxError:  # a nonlocal with nothing around it to bind to
        found += [name for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal) for name in inner.names]
    return tuple(found)


def rename(node: Def, names: Mapping[str, str]) -> str:
    """The text of a definition with free names replaced. Formatting and comments are lost."""
    tree = ast.parse(ast.unparse(node))
    return ast.unparse(_Renamer(names).visit(tree))


def lookup(function: types.FunctionType, name: str) -> Any:
    """What a free name of a function means to it: closure first, then globals, then builtins.

    Raises:
        NameError: nothing.
    """
    if function.__closure__ and name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            raise NameError(name) from None
    return lookup_in(function.__globals__, name)


def lookup_in(namespace: Mapping[str, Any], name: str) -> Any:
    """What a global name means in a namespace."""
    if name in namespace:
        return namespace[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    raise NameError(name)


@functools.lru_cache(maxsize=32)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def _parsed(filename: str, namespace: Mapping[str, Any] | None = None) -> tuple[str, ast.Module | None]:
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, dict(namespace) if namespace else None))
    try:
        return text, _parse(text) if text else None
    except SyntaxError:
        return text, None


def _is_code_of(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if code.co_name != "<lambda>" or node.lineno != code.co_firstlineno:
        return False
    # Lambdas of one line differ in their bodies' positions, which the bytecode keeps for tracebacks.
    body = (node.body.lineno, node.body.end_lineno, node.body.col_offset, node.body.end_col_offset)
    return body in set(code.co_positions())


def _class_source(kind: type, name: str) -> Source:
    codes = [code for value in vars(kind).values() if (code := _code_of(value)) is not None]
    filenames = list(dict.fromkeys(code.co_filename for code in codes))
    lines = {code.co_firstlineno for code in codes}
    if not filenames:  # no method tells where it is: look in its module's file, then in the cells, the newest last
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        filenames = [file] if file and not importing.is_library_file(file) else []
        filenames += [name for name in linecache.cache if name.startswith("<") or "ipykernel" in name]
    best = None
    for filename in filenames:
        text, tree = _parsed(filename)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.ClassDef) or node.name != kind.__name__:
                continue
            if not lines or any(node.lineno <= line <= (node.end_lineno or 0) for line in lines):
                best = _cut(text, node)
    if best is None:
        raise CaptureError(f"the source of class {name} can't be found: define it in a cell or a file")
    return best


def _code_of(value: Any) -> types.CodeType | None:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    value = inspect.unwrap(value) if callable(value) else value
    code = getattr(value, "__code__", None)
    return code if isinstance(code, types.CodeType) and not generated(code) else None


def generated(code: types.CodeType) -> bool:
    """Whether a method was made by dataclass, enum and the like, so that its place isn't the class's."""
    return code.co_filename.startswith("<string") or importing.is_library_file(code.co_filename)


def _cut(text: str, node: Def) -> Source:
    """The definition alone, at the left margin, parsed again so that positions fit the text."""
    if isinstance(node, ast.Lambda):
        segment = ast.get_source_segment(text, node) or ast.unparse(node)
        expression = ast.parse(f"({segment}\n)", mode="eval").body
        assert isinstance(expression, ast.Lambda)
        for inner in ast.walk(expression):  # back over the bracket that was added
            if getattr(inner, "lineno", 0) == 1:
                inner.col_offset -= 1  # type: ignore[attr-defined]
            if getattr(inner, "end_lineno", 0) == 1:
                inner.end_col_offset -= 1  # type: ignore[attr-defined]
        return Source(segment, expression)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines(keepends=True)[first - 1 : node.end_lineno]
    block = textwrap.dedent("".join(lines)).rstrip()
    try:
        copy = ast.parse(block).body
        if len(copy) == 1 and ast.dump(copy[0]) == ast.dump(node):
            return Source(block, copy[0])  # type: ignore[arg-type]
    except SyntaxError:
        pass
    block = ast.unparse(node)  # a multi-line string at the margin, or several statements on a line
    return Source(block, ast.parse(block).body[0])  # type: ignore[arg-type]


def _without_annotations(node: Def) -> Def:
    tree = ast.parse(ast.unparse(node))
    for inner in ast.walk(tree):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner.returns = None
        if isinstance(inner, ast.arg):
            inner.annotation = None
        if isinstance(inner, ast.AnnAssign):
            inner.annotation = ast.Constant(0)
    statement = tree.body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement  # type: ignore[return-value]


def _symbols(text: str) -> symtable.SymbolTable:
    return symtable.symtable(text, "<capture>", "exec")


def _tables(table: symtable.SymbolTable, skip_top: bool = False) -> Iterator[symtable.SymbolTable]:
    if not skip_top:
        yield table
    for child in table.get_children():
        yield from _tables(child)


def _bound(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_parameter() or symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
            yield symbol.get_name()


def _outer_names(text: str) -> tuple[str, ...]:
    """Names that a module's text reads, at its top or as globals of its inner scopes, and doesn't bind at its top."""
    top = _symbols(text)
    found: set[str] = set()
    for table in _tables(top):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                found.add(symbol.get_name())
    found -= set(_bound(top))
    order = {name: position for position, name in reversed(list(enumerate(_words(text))))}
    return tuple(sorted(found, key=lambda name: (order.get(name, len(order)), name)))


def _words(text: str) -> Sequence[str]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    return [node.id for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


class _Renamer(ast.NodeTransformer):
    """Replaces free names, and leaves the scopes alone that bind the same name themselves."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def _scope(self, node: Any) -> Any:
        bound = {inner.arg for inner in ast.walk(node.args) if isinstance(inner, ast.arg)}
        body = node.body if isinstance(node.body, list) else [node.body]
        for inner in (found for statement in body for found in ast.walk(statement)):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                bound.add(inner.id)
        kept = self.names
        self.names = {old: new for old, new in kept.items() if old not in bound}
        if isinstance(node, ast.FunctionDef):
            node.body = [self.visit(statement) for statement in node.body]
        else:
            node.body = self.visit(node.body)
        self.names = kept
        node.args = self.visit(node.args)
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
            node.name = self.names.get(node.name, node.name)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._scope(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._scope(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)

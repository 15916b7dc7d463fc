"""Gives a module's own names a suffix, so that its text can stand in a notebook beside anything else.

Two accepted kernels may both define ``BLOCK`` or ``_rows``. A Triton kernel looks its constants up when it is compiled, so the second
cell would silently change the first one's kernel. With a suffix made from the source they never meet. Imported names stay: they mean the
same everywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_names(source: str) -> tuple[str, ...]:
    """What the module defines at its top level: functions, classes and assigned names, not what it imports. Sorted."""
    tree = ast.parse(source)
    names = _bound(tree.body) - _imported(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            names.update(node.names)
    return tuple(sorted(names))


def rename(source: str, new: Mapping[str, str]) -> str:
    """The module with its own names exchanged; comments and layout stay.

    Only what refers to the module's name is touched: a parameter, an attribute or a keyword of the same name is not.

    >>> print(rename("BLOCK = 64\\ndef f(x, BLOCK=BLOCK):\\n    return g(x, BLOCK=BLOCK)", {"BLOCK": "BLOCK_7", "f": "f_7"}))
    BLOCK_7 = 64
    def f_7(x, BLOCK=BLOCK_7):
        return g(x, BLOCK=BLOCK)

    Raises:
        ValueError: a name is used in a way that can't be exchanged safely.
    """
    tree = ast.parse(source)
    walker = _Walker(new, source)
    walker.body(tree.body, _Scope("module"))
    renamed = _apply(source, walker.edits)
    # The walker has exchanged the names in the tree as well: the edited text must parse to the same tree.
    if ast.dump(tree) != ast.dump(ast.parse(renamed)):
        raise ValueError("a name of the module is used in a way that can't be renamed")
    return renamed


@dataclass
class _Scope:
    kind: str
    bound: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    """Names that the scope declares ``global``."""
    outer: _Scope | None = None

    def is_module_name(self, name: str) -> bool:
        """Whether `name`, read here, is the module's."""
        scope: _Scope | None = self
        while scope is not None and scope.kind != "module":
            if name in scope.shared:
                return True
            if name in scope.bound and (scope.kind == "function" or scope is self):
                return False
            scope = scope.outer
        return True


@dataclass
class _Walker:
    """Collects the edits ``(line, column in bytes, old, new)`` and exchanges the names in the tree as it goes."""

    new: Mapping[str, str]
    source: str
    edits: list[tuple[int, int, str, str]] = field(default_factory=list)

    def body(self, nodes: list[ast.stmt], scope: _Scope) -> None:
        for node in nodes:
            self.visit(node, scope)

    def visit(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._definition(node, scope)
        elif isinstance(node, ast.Lambda):
            self._arguments(node.args, scope)
            self.visit(node.body, _Scope("function", frozenset(_parameters(node.args)), outer=scope))
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, scope)
        elif isinstance(node, ast.Name):
            if self._is_ours(node.id, scope):
                self.edits.append((node.lineno, node.col_offset, node.id, self.new[node.id]))
                node.id = self.new[node.id]
        elif isinstance(node, ast.Global):
            self._global(node)
        elif isinstance(node, ast.JoinedStr):
            self._f_string(node, scope)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child, scope)

    def _is_ours(self, name: str, scope: _Scope) -> bool:
        return name in self.new and scope.is_module_name(name)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: _Scope) -> None:
        for child in node.decorator_list:
            self.visit(child, scope)
        if self._is_ours(node.name, scope):
            line, column = self._find(node.lineno, node.col_offset, node.name)
            self.edits.append((line, column, node.name, self.new[node.name]))
            node.name = self.new[node.name]
        shared = frozenset(name for statement in _within(node.body) if isinstance(statement, ast.Global) for name in statement.names)
        if isinstance(node, ast.ClassDef):
            for base in (*node.bases, *node.keywords):
                self.visit(base, scope)
            self.body(node.body, _Scope("class", frozenset(_bound(node.body)) - shared, shared, scope))
            return
        self._arguments(node.args, scope)
        if node.returns is not None:
            self.visit(node.returns, scope)
        bound = frozenset(_bound(node.body)) | frozenset(_parameters(node.args))
        self.body(node.body, _Scope("function", bound - shared, shared, scope))

    def _arguments(self, arguments: ast.arguments, scope: _Scope) -> None:
        """Annotations and defaults belong to the scope around the function."""
        for child in ast.iter_child_nodes(arguments):
            self.visit(child, scope)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: _Scope) -> None:
        bound = frozenset(name.id for each in node.generators for name in ast.walk(each.target) if isinstance(name, ast.Name))
        inner = _Scope("function", bound, outer=scope)
        for position, generator in enumerate(node.generators):
            self.visit(generator.iter, inner if position else scope)
            self.visit(generator.target, inner)
            for test in generator.ifs:
                self.visit(test, inner)
        results: tuple[ast.expr, ...] = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for result in results:
            self.visit(result, inner)

    def _global(self, node: ast.Global) -> None:
        column = node.col_offset + len("global")
        for position, name in enumerate(node.names):
            line, column = self._find(node.lineno, column, name)
            if name in self.new:
                self.edits.append((line, column, name, self.new[name]))
                node.names[position] = self.new[name]
            column += len(name.encode())

    def _f_string(self, node: ast.JoinedStr, scope: _Scope) -> None:
        """Python 3.11 gives no true positions within an f-string, so its text is edited as a whole, inside the braces only."""
        inner = _Walker(self.new, self.source)
        for child in ast.iter_child_nodes(node):
            inner.visit(child, scope)
        old = ast.get_source_segment(self.source, node)
        names = {edit[2] for edit in inner.edits}
        if not names or old is None:
            return
        text = _in_braces(old, names, self.new)
        self.edits.append((node.lineno, node.col_offset, old, text))

    def _find(self, line: int, column: int, name: str) -> tuple[int, int]:
        """Where `name` stands as a word at or after a position."""
        lines = self.source.split("\n")
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)".encode())
        for number in range(line, len(lines) + 1):
            found = pattern.search(lines[number - 1].encode(), column if number == line else 0)
            if found:
                return number, found.start()
        raise ValueError(f"{name} can't be found in the source")


def _in_braces(text: str, names: set[str], new: Mapping[str, str]) -> str:
    """An f-string's text with the names exchanged in what it formats; ``{{`` outside a field is a brace of the text."""
    parts: list[str] = []
    depth = 0
    for part in re.findall(r"\{\{|\}\}|[{}]|(?<![\w.])[^\W\d]\w*|.", text, re.DOTALL):
        if part in ("{{", "}}") and depth == 0:
            pass
        elif part[0] in "{}":
            depth += part.count("{") - part.count("}")
        elif depth and part in names:
            part = new[part]
        parts.append(part)
    return "".join(parts)


def _apply(source: str, edits: list[tuple[int, int, str, str]]) -> str:
    starts = [0]
    data = source.encode()
    starts += accumulate(len(line.encode()) + 1 for line in source.split("\n"))
    for line, column, old, text in sorted(set(edits), reverse=True):
        begin = starts[line - 1] + column
        end = begin + len(old.encode())
        if data[begin:end] != old.encode():
            raise ValueError(f"{old} is not where it should be")
        data = data[:begin] + text.encode() + data[end:]
    return data.decode()


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    yield from (one.arg for one in every if one is not None)


def _within(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every node of a scope's own, without those of functions and classes inside it."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, _COMPREHENSIONS):  # of a comprehension, only := binds here
            yield from (each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
            continue
        stack.extend(ast.iter_child_nodes(node))


def _bound(body: list[ast.stmt]) -> set[str]:
    """Names that statements bind in their own scope."""
    names: set[str] = _imported(body)
    for node in _within(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def _imported(body: list[ast.stmt]) -> set[str]:
    """Bound by an import, an ``except … as`` or a ``match``, whose positions Python does not tell: these keep their names."""
    names: set[str] = set()
    for node in _within(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names

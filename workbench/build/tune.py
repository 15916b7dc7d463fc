"""A candidate's tunable space: the literal ``TUNE = {"BLOCK": [64, 128], …}`` at the top level of its module.

It is read by `ast`, never by running the module. The first entry of each name is its default. When a candidate is loaded, each name
is a global of the module before the body runs; accepted code has the chosen literals in their place and no ``TUNE``.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_tune(source: str) -> dict[str, tuple[Any, ...]]:
    """The choices of each tunable name, default first; empty where the module has no ``TUNE``.

    >>> read_tune('TUNE = {"BLOCK": [64, 128]}')
    {'BLOCK': (64, 128)}

    Raises:
        ValueError: the module can't be parsed, or its ``TUNE`` is not a literal dict of non-empty lists. One line, with the line's number.
    """
    statement = _find(_parse(source))
    if statement is None:
        return {}
    line = statement.lineno
    assert statement.value is not None
    try:
        space = ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError):
        raise ValueError(f"line {line}: TUNE must be a literal dict, such as TUNE = {{'BLOCK': [64, 128]}}") from None
    if not isinstance(space, dict):
        raise ValueError(f"line {line}: TUNE must be a dict, not {type(space).__name__}")
    choices: dict[str, tuple[Any, ...]] = {}
    for name, values in space.items():
        if not isinstance(name, str) or not name.isidentifier() or name == "TUNE":
            raise ValueError(f"line {line}: TUNE's key {name!r} can't be the name of a global")
        if not isinstance(values, (list, tuple)) or not values:
            raise ValueError(f"line {line}: TUNE[{name!r}] must be a non-empty list of choices")
        bad = next((value for value in values if not _is_plain(value)), None)
        if bad is not None:
            raise ValueError(f"line {line}: TUNE[{name!r}] holds {bad!r}: only numbers, strings, booleans, None and tuples of them")
        choices[name] = tuple(values)
    return choices


def defaults(source: str) -> dict[str, Any]:
    """The first choice of each tunable name."""
    return {name: values[0] for name, values in read_tune(source).items()}


def complete(source: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each tunable name: those of `parameters`, and defaults for the rest.

    Raises:
        ValueError: `parameters` names something that ``TUNE`` lacks.
    """
    values = defaults(source)
    unknown = sorted(set(parameters) - set(values))
    if unknown:
        raise ValueError(f"TUNE has no {', '.join(unknown)}" + (f"; it has {', '.join(values)}" if values else ": the module has no TUNE"))
    return {**values, **{name: _frozen(value) for name, value in parameters.items()}}


def choose(source: str, parameters: Mapping[str, Any]) -> str:
    """Plain source: the chosen values as assignments where ``TUNE`` stood, and no ``TUNE``.

    Where statements other than imports come before ``TUNE``, the assignments move above them, since the loader sets the names before
    anything runs.
    """
    tree = _parse(source)
    statement = _find(tree)
    if statement is None:
        complete(source, parameters)
        return source
    values = complete(source, parameters)
    lines = source.splitlines(keepends=True)
    assignments = [f"{name} = {value!r}\n" for name, value in values.items()]
    start, end = statement.lineno - 1, statement.end_lineno or statement.lineno
    before = [node for node in tree.body if node.lineno < statement.lineno]
    if all(_is_preamble(node) for node in before):
        return "".join(lines[:start] + assignments + lines[end:])
    leading = 0
    for node in before:
        if not (_is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        leading = node.end_lineno or node.lineno
    rest = lines[leading:start] + lines[end:]
    return "".join([*lines[:leading], *assignments, *rest])


def load_candidate(source: str, entry: str, parameters: Mapping[str, Any], *, directory: Path, name: str = "candidate") -> object:
    """Runs the candidate's module and returns what it defines as `entry`.

    The source is written to ``<directory>/<name>.py`` first, since Triton reads the lines of its kernels from their file. The ``TUNE``
    names are globals before the body runs. Whatever the body raises comes through.

    Raises:
        ValueError: a bad ``TUNE``, or parameters that it lacks.
        AttributeError: the module defines no `entry`.
    """
    values = complete(source, parameters)
    path = Path(directory) / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(values)
    # Dataclasses, pickling and `inspect` look the module up by its name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    try:
        return getattr(module, entry)
    except AttributeError:
        raise AttributeError(f"the module defines no {entry!r}") from None


def candidate_line(error: BaseException, path: str) -> int | None:
    """The last line of the file at `path` that was running when `error` was raised; None where none was."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    if line is None and error.__cause__ is not None:
        return candidate_line(error.__cause__, path)
    return line


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # a null byte
        raise ValueError(re.sub(r"\s+", " ", str(error))) from None


def _find(tree: ast.Module) -> ast.Assign | ast.AnnAssign | None:
    found: list[ast.Assign | ast.AnnAssign] = []
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == "TUNE" for target in targets):
            assert isinstance(node, (ast.Assign, ast.AnnAssign))
            if len(targets) > 1:
                raise ValueError(f"line {node.lineno}: TUNE must be assigned on its own")
            found.append(node)
    if len(found) > 1:
        raise ValueError(f"line {found[1].lineno}: TUNE is assigned twice")
    return found[0] if found else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _frozen(value: Any) -> Any:
    # JSON has no tuples: a choice that is one comes back from the wire as a list.
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_preamble(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom)) or _is_docstring(node)

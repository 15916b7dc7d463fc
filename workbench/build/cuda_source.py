"""What a CUDA candidate's module says of itself, read by `ast` and never by running it.

The module has the literals ``CUDA = r\"\"\"…\"\"\"`` and ``KERNELS = ("name", …)``. A kernel of a template is named with its arguments,
which may be macros: ``"scale<BLOCK>"``. The names of ``TUNE`` reach the source as macros of the same name.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.build.tune import complete


@dataclass(frozen=True)
class CudaSource:
    """The CUDA C++ of a candidate.

    Attributes:
        text: the value of ``CUDA``.
        kernels: the value of ``KERNELS``.
        line: of the module on which the text's first line stands.
        exact: whether line n of the text is line ``line + n - 1`` of the module; false where escapes or several literals come between.
        macros: value of each name of ``TUNE`` that can be a macro, as it is written.
    """

    text: str
    kernels: tuple[str, ...]
    line: int
    exact: bool = True
    macros: Mapping[str, str] = field(default_factory=dict)

    def module_line(self, line: int) -> int:
        """The module's line for a line of the text, counted from 1."""
        return self.line + line - 1 if self.exact else self.line


def backend_of(source: str) -> Literal["triton", "cuda"]:
    """Which backend a module is written for: ``cuda`` where it hands C++ to a compiler, whatever its comments say."""
    calls, names = _reads(source)
    return "cuda" if {"CUDA", "KERNELS"} <= names or calls & {*_EXTENSION, "_compile_kernel"} else "triton"


def uses_extension(source: str) -> bool:
    """Whether the module builds a C++ extension of PyTorch when it runs, which takes nvcc and about a minute."""
    return bool(_reads(source)[0] & _EXTENSION)


_EXTENSION = frozenset({"load_inline", "cpp_extension.load"})


def _reads(source: str) -> tuple[set[str], set[str]]:
    """The compilers that the module calls, and the names that it assigns at its top level."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(), set()  # the judge says what is wrong with it
    known = (*_EXTENSION, "_compile_kernel")
    called = (
        ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
    )
    calls = {name for path in called for name in known if path == name or path.endswith(f".{name}")}
    assigned = {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)}
    return calls, assigned


def read_cuda(source: str, parameters: Mapping[str, Any] | None = None) -> CudaSource:
    """The CUDA C++ of a module at a point of its tunable space.

    Raises:
        ValueError: it lacks a literal, or ``TUNE`` is bad or lacks a parameter; one line, with the line's number.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    text = _assigned(tree, "CUDA")
    if text is None:
        raise ValueError('the module has no CUDA source: write CUDA = r"""…""" at its top level')
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        raise ValueError(f"line {text.lineno}: CUDA must be one literal string; numbers reach it as macros, by nvcc_options=['-DNAME=…']")
    kernels = _assigned(tree, "KERNELS")
    if kernels is None:
        raise ValueError('the module does not name its kernels: write KERNELS = ("name",) at its top level')
    try:
        names = ast.literal_eval(kernels)
    except (ValueError, TypeError, SyntaxError):
        names = None
    if not (isinstance(names, (tuple, list)) and names and all(isinstance(name, str) and name.strip() for name in names)):
        raise ValueError(f'line {kernels.lineno}: KERNELS must be a literal tuple of names, such as KERNELS = ("scale",)')
    values = complete(source, parameters or {})
    return CudaSource(
        text=text.value,
        kernels=tuple(names),
        line=text.lineno,
        exact=(text.end_lineno or text.lineno) - text.lineno == text.value.count("\n"),
        macros={name: macro for name, value in values.items() if (macro := as_macro(value)) is not None},
    )


def as_macro(value: Any) -> str | None:
    """A value as it stands behind ``-DNAME=``; None for what C++ has no such literal for."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, float)):
        return repr(value)
    return value if isinstance(value, str) and value else None


def _assigned(tree: ast.Module, name: str) -> ast.expr | None:
    found = None
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, (ast.Assign, ast.AnnAssign))
            found = node.value
    return found

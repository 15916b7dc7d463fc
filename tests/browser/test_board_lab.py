"""The board in JupyterLab, fed by a played-back run in a real kernel. Tests of one class share a notebook and go from top to bottom."""

from __future__ import annotations

import hashlib

import pytest

SETUP = """
import threading
from recorded_run import RecordedRun
from sample_run import run_events
from workbench.board import Board
run = RecordedRun(run_events(40)).play(90)
told = []
CELL, EXPECTED = "", ""
def accept(candidate, place, consent=False):
    return {"code": f"# accepted {candidate}\\nx = 2\\n", "cell": CELL, "expected_hash": EXPECTED, "message": "right, judged again",
            "provenance": {"run": run.id, "candidate": candidate}}
board = Board(run, accept=accept, applied=lambda candidate, outcome: told.append((candidate, outcome)))
board
"""
OP = "x = 1\ny = 2\n"
OP_HASH = hashlib.sha256(OP.encode()).hexdigest()
ROWS = "Number(document.querySelector('.kw-table').getAttribute('aria-rowcount'))"
GOOD = ".kw-accept[data-tone=good]"


def open_board(lab, page, name):
    """A notebook with the op's cell (c0), the board (c1) and a cell below."""
    notebook = lab.open(page, lab.notebook(name, [OP, SETUP, "z = 3"]))
    notebook.run(1)
    page.wait_for_selector(".kw-board .kw-tbody .kw-tr")
    return notebook


class TestBoard:
    @pytest.fixture(scope="class")
    def book(self, lab, shared_page):
        yield open_board(lab, shared_page, "board.ipynb")
        assert shared_page.seen.strange == [], "the notebook asked another host"
        assert shared_page.seen.errors == []

    def test_it_follows_the_run(self, book):
        before = book.page.evaluate(ROWS)
        index = book.add("run.play(30); len(run.rows())")
        book.run(index)
        book.page.wait_for_function(f"(old) => {ROWS} > old", arg=before)
        book.page.wait_for_function(f"(rows) => {ROWS} === rows + 1", arg=int(book.text(index)))

    def test_events_from_a_thread_arrive_while_no_cell_runs(self, book):
        before = book.page.evaluate(ROWS)
        book.run(book.add("threading.Timer(0.5, run.play, args=(30,)).start()"))
        book.page.wait_for_function(f"(old) => {ROWS} > old", arg=before)

    def test_a_selection_is_shared_with_python(self, book):
        book.page.locator(".kw-tbody .kw-tr").nth(2).click()
        chosen = book.page.locator(".kw-tbody .kw-tr[aria-selected=true] b").first.inner_text()
        index = book.add("board.selected")
        book.run(index)
        assert chosen in book.text(index)
        book.run(book.add("board.select('k2');"))
        book.page.wait_for_function("document.querySelector('.kw-inspector-id').textContent === 'k2'")

    def test_buttons_reach_the_run(self, book):
        book.page.get_by_role("button", name="Pause").click()
        book.page.get_by_label("A hint for the search").fill("keep the row in registers")
        book.page.get_by_role("button", name="Hint", exact=True).click()
        book.page.wait_for_selector("text=Hint taken")
        index = book.add("run.asked")
        book.run(index)
        assert "('pause',), ('hint', 'keep the row in registers')" in book.text(index)

    def test_keys_in_the_board_are_not_the_notebooks(self, book):
        before, keyboard = book.sources(), book.page.keyboard
        book.page.locator(".kw-table").focus()
        for key in ("d", "d", "x", "a", "b", "ArrowDown", "ArrowDown"):
            keyboard.press(key)
        book.page.get_by_role("tab", name="Why").focus()
        keyboard.press("d")
        keyboard.press("d")
        assert book.sources() == before
        book.page.locator(".kw-table").focus()
        with book.page.expect_response(lambda response: "/api/contents/" in response.url and response.request.method == "PUT"):
            keyboard.press("Control+s")  # with a modifier they are

    def test_the_inspector_shows_code_diff_and_log(self, book):
        page = book.page
        page.locator(".kw-tbody .kw-tr").first.click()
        page.get_by_role("tab", name="Code").click()
        page.wait_for_selector(".kw-tabpanel .cm-content >> text=triton.jit")
        page.get_by_role("tab", name="Diff").click()
        page.get_by_label("Compare with").select_option("t:reference")
        page.wait_for_selector(".kw-tabpanel .cm-deletedChunk, .kw-tabpanel .cm-merge-a")
        page.get_by_role("tab", name="Log").click()
        page.wait_for_selector(".kw-log >> text=the judge is ready")


class TestAccept:
    @pytest.fixture(scope="class")
    def book(self, lab, shared_page):
        yield open_board(lab, shared_page, "accept.ipynb")
        assert shared_page.seen.strange == []

    def knows(self, book, cell, expected):
        """Lets accept name the run's cell, and the hash that it must still have."""
        book.run(book.add(f"CELL, EXPECTED = {cell!r}, {expected!r}"))

    def click(self, book, name):
        book.page.get_by_role("button", name=name).first.click()
        book.page.wait_for_selector(GOOD)
        return book.page.locator(".kw-inspector-id").first.inner_text()

    def test_without_a_known_cell_it_goes_below_the_board(self, book):
        best = self.click(book, "Accept")
        assert book.sources()[2] == f"# accepted {best}\nx = 2\n"

    def test_below_the_runs_cell_and_nothing_is_run(self, book):
        self.knows(book, "c0", "")
        best = self.click(book, "Accept")
        sources = book.sources()
        assert sources[1] == f"# accepted {best}\nx = 2\n" and sources[0] == OP
        assert book.outputs(1) == []
        kept = book.metadata(1)["workbench"]
        assert kept["candidate"] == best and kept["source_sha256"] == hashlib.sha256(sources[1].encode()).hexdigest()
        index = book.add("told[-1]")
        book.run(index)
        assert "'ok': True" in book.text(index) and "'place': 'below'" in book.text(index)

    def test_a_cell_that_has_changed_is_not_replaced(self, book):
        page = book.page
        self.knows(book, "c0", OP_HASH)
        page.evaluate("window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0].setSource('x = 1\\ny = 99\\n')")
        page.get_by_role("button", name="Replace cell").click()
        page.wait_for_selector(".kw-accept[data-tone=bad]")
        assert book.sources()[0] == "x = 1\ny = 99\n"
        assert page.locator(".kw-accept details").count() == 3
        page.locator(".kw-accept summary", has_text="The cell now").click()
        page.wait_for_selector(".kw-accept .cm-content >> text=y = 99")
        self.click(book, "Insert below instead")
        assert book.sources()[0] == "x = 1\ny = 99\n" and book.sources()[1].startswith("# accepted ")
        page.evaluate("(text) => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0].setSource(text)", OP)

    def test_replace_is_one_undo(self, book):
        book.page.get_by_role("button", name="Dismiss").click()
        self.click(book, "Replace cell")
        assert book.sources()[0].startswith("# accepted ")
        assert book.metadata(0)["workbench"]["candidate"]
        book.page.locator(".jp-Notebook .jp-Cell").first.locator(".cm-content").first.click()
        book.page.keyboard.press("Control+z")
        undone = "(text) => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0].getSource() === text"
        book.page.wait_for_function(undone, arg=OP)

    def test_of_two_views_only_one_changes_the_notebook(self, book):
        page = book.page
        page.get_by_role("button", name="Dismiss").click()
        before = sum(source.startswith("# accepted ") for source in book.sources())
        book.run(book.add("board"))
        page.wait_for_function("document.querySelectorAll('.kw-board').length === 2")
        page.locator(".kw-board").first.get_by_role("button", name="Accept").click()
        page.wait_for_selector(GOOD)
        assert sum(source.startswith("# accepted ") for source in book.sources()) == before + 1
        assert page.locator(GOOD).count() == 1

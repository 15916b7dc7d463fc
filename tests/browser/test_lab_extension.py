"""The JupyterLab extension of the installed wheel. Tests of one class share a notebook and go from top to bottom."""

from __future__ import annotations

import gzip
import json
import re

import nbformat
import pytest
from lab_runs import BEGIN, BOARD, GOOD, LOAD, OP, ROWS, SHOW, accepted, cell, command, edit_cell

BUTTON = "[data-jp-item-name=kernel-workbench-evolve] button, [data-jp-item-name=kernel-workbench-evolve] jp-button"
DIALOG = ".jp-Dialog"
TOAST = ".Toastify__toast"


def calm(page):
    """What must hold of every page when its tests are over."""
    assert page.seen.strange == [], "the front end asked another host"
    assert page.seen.errors == []


class TestTheButtonOnACell:
    @pytest.fixture(scope="class")
    def book(self, full_lab, shared_page):
        yield full_lab.open(shared_page, full_lab.notebook("button.ipynb", [OP, "%%time\nz = 1", ""]))
        calm(shared_page)

    def press(self, book, index):
        cell(book.page, index).locator(".cm-content").first.click()
        cell(book.page, index).locator(BUTTON).first.click()

    def test_it_wraps_the_cell_keeps_the_cursor_and_is_one_undo(self, book):
        page = book.page
        edit_cell(page, 0, ["Control+Home", "End", "#"])  # typed just before, so that undo would take both if they were one step
        self.press_by_shortcut(page)
        typed = OP.replace("(x):", "(x):#")
        assert book.sources()[0] == f"%%evolve_kernel\n{typed}"
        page.keyboard.type("!")  # the cursor is still behind the character that was typed
        assert book.sources()[0] == f"%%evolve_kernel\n{typed.replace('#', '#!')}"
        page.keyboard.press("Control+z")
        assert book.sources()[0] == f"%%evolve_kernel\n{typed}"
        page.keyboard.press("Control+z")
        assert book.sources()[0] == typed
        page.keyboard.press("Control+z")
        assert book.sources()[0] == OP
        assert book.outputs(0) == []

    def press_by_shortcut(self, page):
        page.keyboard.press("Alt+Shift+K")
        page.wait_for_function("window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0].getSource().startsWith('%%')")

    def test_it_offers_to_load_the_workbench(self, book):
        page = book.page
        self.press(book, 0)
        page.get_by_text("Add %load_ext workbench above").first.click()
        page.wait_for_function("window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells.length === 4")
        assert book.sources()[0] == LOAD and book.outputs(0) == []
        assert book.sources()[1] == f"%%evolve_kernel\n{OP}"

    def test_a_cell_with_another_magic_or_without_code_is_left_alone(self, book):
        self.press(book, 2)
        book.page.wait_for_selector(f"{TOAST} >> text=begins with %%time")
        self.press(book, 3)
        book.page.wait_for_selector(f"{TOAST} >> text=This cell is empty")
        assert book.sources()[2:] == ["%%time\nz = 1", ""]

    def test_a_cell_that_has_a_board_is_gone_to(self, book):
        index = book.add(SHOW)
        book.run(index)
        book.page.wait_for_selector(".kw-board")
        before = book.sources()
        book.page.evaluate("document.querySelector('.jp-Notebook .jp-WindowedPanel-outer')?.scrollTo(0, 0)")
        self.press(book, index)
        book.page.wait_for_function("document.activeElement?.closest('.kw-board') !== null")
        assert book.sources() == before


class TestCommands:
    @pytest.fixture(scope="class")
    def book(self, full_lab, shared_page):
        yield full_lab.open(shared_page, full_lab.notebook("commands.ipynb", [OP, BOARD]))
        calm(shared_page)

    def test_without_a_run_they_say_what_to_do(self, book):
        command(book.page, "accept")
        book.page.wait_for_selector(f"{TOAST} >> text=this notebook shows no board")
        command(book.page, "step")
        book.page.wait_for_selector(f"{TOAST} >> text=no run yet")

    def test_they_press_the_boards_own_buttons(self, book):
        page = book.page
        book.run(1)
        page.wait_for_function(f"{ROWS} === 6", timeout=30_000)  # the header and five variants: the seed and four steps
        waits = "document.querySelector('.kw-state').textContent === 'waiting for you'"
        page.wait_for_function(waits)
        command(page, "step")
        page.wait_for_function(f"{ROWS} === 7 && {waits}")
        command(page, "auto")
        page.wait_for_function(f"{ROWS} > 9")
        command(page, "pause")
        page.wait_for_function("document.querySelector('.kw-state').textContent === 'paused'")

    def test_a_button_that_is_off_says_why(self, book):
        command(book.page, "stop")
        book.page.wait_for_function("document.querySelector('.kw-state').textContent === 'ended'")
        command(book.page, "step")
        book.page.wait_for_selector(f"{TOAST} >> text=The run has ended")

    def test_each_has_an_entry_in_the_palette(self, book):
        page = book.page
        page.keyboard.press("Control+Shift+C")
        page.keyboard.type("kernel workbench")
        shown = page.locator(".lm-CommandPalette-item").all_inner_texts()
        for label in ("Step", "Auto", "Pause", "Stop", "Accept the Selected Variant", "Show Runs", "Open Profiler Trace"):
            assert any(label in entry for entry in shown), (label, shown)
        page.keyboard.press("Escape")


class TestAccept:
    @pytest.fixture(scope="class")
    def book(self, full_lab, shared_page):
        book = full_lab.open(shared_page, full_lab.notebook("accept.ipynb", [OP, BOARD, "z = 3"]))
        book.run(1)
        shared_page.wait_for_function(f"{ROWS} === 6", timeout=30_000)
        shared_page.evaluate("""() => {
            window.offers = [];
            window.addEventListener('kernel-workbench:apply', (event) => window.offers.push(event.defaultPrevented)); }""")
        yield book
        calm(shared_page)

    def click(self, book, name):
        if book.page.locator(".kw-accept .kw-dismiss").count():
            book.page.locator(".kw-accept .kw-dismiss").click()
        book.page.get_by_role("button", name=name).first.click()

    def told(self, book):
        index = book.add("told[-1]")
        book.run(index)
        return book.text(index)

    def change(self, book, text):
        """What another person did to the cell meanwhile."""
        book.page.evaluate("(text) => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0].setSource(text)", text)

    def test_insert_below_is_done_by_the_extension_and_acknowledged(self, book):
        self.click(book, "Accept")
        book.page.wait_for_selector(GOOD)
        assert book.page.evaluate("window.offers") == [True]
        assert book.sources()[0] == OP and book.sources()[1].endswith(accepted(OP))
        assert book.outputs(1) == []
        kept = book.metadata(1)["workbench"]
        assert kept["run"] and kept["candidate"] and kept["source_sha256"]
        assert book.page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex") == 1
        said = self.told(book)
        assert "'ok': True" in said and kept["source_sha256"] in said

    def test_replace_is_one_undo_even_right_after_typing(self, book):
        page = book.page
        page.evaluate("""() => { const cell = window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0];
            window.edits = [];
            cell.changed.connect((_, change) => change.sourceChange && window.edits.push(change.sourceChange)); }""")
        edit_cell(page, 0, ["Control+End", "9", "Backspace"])
        self.click(book, "Replace cell")
        page.wait_for_selector(GOOD)
        first, rest = book.sources()[0].split("\n", 1)
        assert first.startswith("# accepted") and rest == accepted(OP)
        # Only the lines that differ were touched: the last two stand as they stood, so another person's edit there would have merged.
        kept_tail = page.evaluate("""() => { const last = window.edits.at(-1); const replaced = last.find((one) => one.delete);
            return [replaced.delete, last.filter((one) => one.insert).map((one) => one.insert).join('')]; }""")
        assert kept_tail[0] == len("def double(x):\n    return x * 2\n") and "y = double" not in kept_tail[1]
        edit_cell(page, 0, ["Control+z"])
        assert book.sources()[0] == OP

    def test_a_cell_that_was_changed_meanwhile_is_a_question_with_three_texts(self, book):
        page = book.page
        self.change(book, OP + "\nmine = 1")
        self.click(book, "Replace cell")
        page.wait_for_selector(DIALOG)
        shown = page.locator(f"{DIALOG} pre").all_inner_texts()
        assert [text.strip() for text in shown][:2] == [OP, OP + "\nmine = 1"] and "x + x" in shown[2]
        marked = [page.locator(f"{DIALOG} pre").nth(place).locator("mark").all_inner_texts() for place in range(3)]
        assert marked[0] == [] and marked[1] == ["mine = 1"]  # what the other person's hand added, and no line more
        assert marked[2][0].startswith("# accepted") and marked[2][1:] == ["    return x + x"]
        assert book.sources()[0] == OP + "\nmine = 1"
        page.screenshot(path=book.shots / "extension-conflict.png")
        page.get_by_role("button", name="Leave it").click()
        page.wait_for_selector(".kw-accept[data-tone=bad]")
        assert book.sources()[0] == OP + "\nmine = 1"
        assert "'ok': False" in self.told(book)

    def test_replacing_it_all_the_same_is_one_undo_to_what_was_there(self, book):
        page = book.page
        self.click(book, "Replace cell")
        page.get_by_role("button", name="Replace what is there now").click()
        page.wait_for_selector(GOOD)
        assert book.sources()[0].startswith("# accepted")
        edit_cell(page, 0, ["Control+z"])
        assert book.sources()[0] == OP + "\nmine = 1"

    def test_inserting_below_leaves_it(self, book):
        page, before = book.page, len(book.sources())
        self.click(book, "Replace cell")
        page.wait_for_selector(DIALOG)
        page.keyboard.press("Enter")  # the answer that destroys nothing is the default
        page.wait_for_selector(GOOD)
        assert len(book.sources()) == before + 1 and book.sources()[0] == OP + "\nmine = 1"
        assert "'place': 'below'" in self.told(book)


class TestASavedRun:
    """A notebook that is opened again shows its runs without the kernel that made them, whether or not it is trusted."""

    @pytest.fixture(scope="class")
    def saved(self, full_lab, shared_page):
        name = full_lab.notebook("saved.ipynb", [SHOW])
        book = full_lab.open(shared_page, name)
        book.run(0)
        shared_page.wait_for_selector(".kw-board")
        for rows in (3, 4):  # with one step already judged when it began
            book.run(book.add("import time; before = len(run.rows()); run.step()\nwhile len(run.rows()) == before: time.sleep(0.05)"))
            shared_page.wait_for_function(f"{ROWS} >= {rows}")
        shared_page.wait_for_timeout(1500)  # the static output is refreshed at most once a second
        assert not shared_page.locator(".kw-record-fold[open]").count(), "beside a live board the record stays folded"
        book.run(book.add("run.stop().wait();"))
        shared_page.wait_for_timeout(1200)
        with shared_page.expect_response(lambda response: "/api/contents/" in response.url and response.request.method == "PUT"):
            shared_page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        shared_page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        calm(shared_page)
        return name

    def look(self, lab, page, name):
        book = lab.open(page, name)
        page.wait_for_selector(".kw-record .kw-board .kw-tbody .kw-tr", timeout=20_000)
        board = page.locator(".kw-record .kw-board")
        assert "double it" in board.inner_text() and board.locator(".kw-badge-best").count() == 1
        assert not page.locator(".kw-record .kw-controls").is_visible()
        board.get_by_role("tab", name="Code").click()
        page.wait_for_selector(".kw-record .cm-content >> text=design=")
        return book

    def test_trusted(self, saved, full_lab, page):
        self.look(full_lab, page, saved)
        page.screenshot(path=full_lab.shots / "extension-record.png")
        calm(page)

    def test_untrusted(self, saved, full_lab, page):
        book = nbformat.read(full_lab.root / saved, as_version=4)
        book.cells[0].source += "\n# somebody else's"
        for output in book.cells[0].outputs:
            for record in [one for mime, one in output.get("data", {}).items() if mime.endswith("run.v1+json")]:
                record["snapshot"]["header"]["name"] = "double it <img src=x onerror='window.stolen = 1'>"
        nbformat.write(book, full_lab.root / "foreign.ipynb")
        opened = self.look(full_lab, page, "foreign.ipynb")
        trusted = "window.jupyterapp.shell.currentWidget.content.widgets[0].model.trusted"
        assert page.evaluate(trusted) is False
        assert page.evaluate("window.stolen") is None and page.locator(".kw-record img").count() == 0
        assert opened.outputs(0)
        calm(page)

    def test_a_damaged_record_is_shown_as_text(self, saved, full_lab, page):
        book = nbformat.read(full_lab.root / saved, as_version=4)
        for output in book.cells[0].outputs:
            for record in [one for mime, one in output.get("data", {}).items() if mime.endswith("run.v1+json")]:
                del record["snapshot"]
        nbformat.write(book, full_lab.root / "damaged.ipynb")
        full_lab.open(page, "damaged.ipynb")
        page.wait_for_selector(".kw-record >> text=can't be shown (it is damaged)")
        assert "double it" in page.locator(".kw-record pre").inner_text()
        calm(page)


class TestThePanel:
    @pytest.fixture(scope="class")
    def book(self, full_lab, shared_page):
        (full_lab.root / "panel").mkdir(exist_ok=True)
        yield full_lab.open(shared_page, full_lab.notebook("panel/panel.ipynb", [BEGIN, SHOW]))
        calm(shared_page)

    def test_an_empty_folder_is_said_to_be_empty_and_stays_empty(self, book, full_lab):
        page = book.page
        command(page, "open-runs")
        panel = page.locator(".kw-runs")
        assert "No cell of this notebook shows a run" in panel.inner_text()
        panel.get_by_role("button", name="List the store").click()
        panel.get_by_text("The store is empty").wait_for()
        assert not (full_lab.root / "panel" / ".workbench").exists()

    def test_a_busy_kernel_is_not_asked(self, book):
        page = book.page
        index = book.add("import time; time.sleep(3)")
        page.evaluate(f"""() => {{ window.jupyterapp.shell.currentWidget.content.activeCellIndex = {index};
            window.ran = window.jupyterapp.commands.execute('notebook:run-cell'); }}""")
        page.wait_for_function("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'")
        page.locator(".kw-runs").get_by_role("button", name="List the store").click()
        page.get_by_text("The kernel is running a cell").wait_for()
        page.evaluate("window.ran")

    def test_runs_of_the_notebook_and_of_the_store(self, book):
        page = book.page
        book.run(1)
        page.wait_for_selector(".kw-board")
        panel = page.locator(".kw-runs")
        page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0")
        panel.get_by_text("double it").first.wait_for()
        panel.get_by_text(re.compile(r"live · best [\d.]+ .?s modelled · 1 variant$")).wait_for()  # it follows the run by itself
        panel.get_by_role("button", name="List the store").click()
        panel.get_by_role("button", name="Look").wait_for()
        assert "in this kernel" in panel.inner_text()
        page.screenshot(path=book.shots / "extension-panel.png")

    def test_looking_at_one_opens_its_record(self, book):
        page = book.page
        page.locator(".kw-runs").get_by_role("button", name="Look").first.click()
        page.wait_for_selector(".jp-MainAreaWidget > .kw-record .kw-board .kw-tbody .kw-tr")
        page.evaluate("window.jupyterapp.shell.currentWidget.close()")

    def test_opening_one_adds_a_cell_that_is_not_run(self, book):
        page = book.page
        page.evaluate("""() => { const { shell } = window.jupyterapp;
            shell.activateById([...shell.widgets('main')].find((one) => one.content?.model?.sharedModel?.cells).id); }""")
        before = book.sources()
        page.locator(".kw-runs").get_by_role("button", name="Open in notebook").first.click()
        page.wait_for_function(f"window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells.length === {len(before) + 1}")
        added = next(number for number, source in enumerate(book.sources()) if source.startswith("%evolve_kernel open "))
        assert book.outputs(added) == []


def trace_of(*names):
    """A Chrome trace of kernels that follow each other."""
    events = [
        {"ph": "X", "name": name, "pid": 0, "tid": 7, "ts": 1000 * at, "dur": 900 - at, "cat": "kernel"} for at, name in enumerate(names)
    ]
    return json.dumps({"traceEvents": events}).encode()


def see_in_viewer(page, name):
    frame = page.frame_locator(".kw-trace iframe")
    frame.get_by_text("Left Heavy").wait_for(timeout=30_000)
    frame.get_by_text("Sandwich").click()
    frame.get_by_text(name).first.wait_for()


def test_a_trace_opens_in_a_tab_and_asks_no_host(full_lab, page):
    (full_lab.root / "step.trace.json.gz").write_bytes(gzip.compress(trace_of("softmax_rows", "fill", "softmax_rows")))
    book = full_lab.open(page, full_lab.notebook("trace.ipynb", ["1"]))
    # As a double click in the file browser does it: by the type of the file.
    page.evaluate("window.jupyterapp.commands.execute('docmanager:open', {path: 'step.trace.json.gz'})")
    see_in_viewer(page, "softmax_rows")
    page.screenshot(path=book.shots / "extension-trace.png")
    page.evaluate("window.jupyterapp.shell.currentWidget.close()")
    # As the board's Trace tab does it: it has the bytes.
    page.evaluate(
        """(text) => document.querySelector('.jp-Notebook').dispatchEvent(new CustomEvent('kernel-workbench:trace', {
            bubbles: true, cancelable: true, detail: {name: 'other.json', data: text}}))""",
        trace_of("matmul", "fill").decode(),
    )
    see_in_viewer(page, "matmul")
    calm(page)

"""What a person does, with everything real: run the cell, step to a right variant, look at it, accept it, run what came of it.

No GPU and no key is needed: the experts propose, the interpreter judges, and every time is modelled.
"""

from __future__ import annotations

import hashlib
import re
import time

import pytest

OP = """%%evolve_kernel --steps 12 --out run
import torch

def scale_rows(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

x = torch.randn(64, 512)
weight = torch.rand(512) + 0.5
y = scale_rows(x, weight)
"""
SETUP = """import os, torch
os.environ.pop("WORKBENCH_STORE", None)
%load_ext workbench"""

WRONG = """def spoil(source):
    import re
    broken, count = re.subn(r"rsqrt\\(", "sqrt(", source, count=1)
    assert count, source
    return broken
spoiled = spoil(run.best.candidate.source)
name = run.submit(spoiled)
run.wait()
run.candidate(name).evaluation.verdict"""

JUDGE_AGAIN = """import workbench
workbench.verify(scale_rows).verdict"""


class TestAPersonsFirstKernel:
    @pytest.fixture(scope="class")
    def book(self, lab, shared_page):
        notebook = lab.open(shared_page, lab.notebook("story.ipynb", [SETUP, OP, "after = 1"]))
        notebook.run(0)
        yield notebook
        shared_page.screenshot(path=lab.shots / "story-end.png")
        assert shared_page.seen.strange == [], "the notebook asked another host"
        assert shared_page.seen.errors == []

    def state(self, book):
        return book.page.locator(".kw-state").first.inner_text()

    def wait_for_state(self, book, *states, seconds=120):
        for _ in range(seconds * 4):
            if self.state(book) in states:
                return
            time.sleep(0.25)
        raise AssertionError(f"the board says {self.state(book)!r}, not one of {states}")

    def test_the_cell_answers_at_once_with_the_board(self, book):
        book.run(1, timeout=120)
        book.page.wait_for_selector(".kw-board .kw-op >> text=scale_rows", timeout=30_000)
        self.wait_for_state(book, "waiting for you")
        board = book.page.locator(".kw-board").first
        assert "no GPU: modelled for" in board.inner_text()
        assert re.search(r"Floor\s+[\d.]+ µs", board.inner_text())

    def test_stepping_to_a_right_variant(self, book):
        page = book.page
        for _ in range(8):
            before = page.evaluate("Number(document.querySelector('.kw-table').getAttribute('aria-rowcount') ?? 0)")
            if page.locator(".kw-badge-best").count() and before > 3:
                break
            page.get_by_role("button", name="Step").first.click()
            page.wait_for_function(
                "(old) => Number(document.querySelector('.kw-table').getAttribute('aria-rowcount')) > old", arg=before, timeout=90_000
            )
            self.wait_for_state(book, "waiting for you", "ended")
        assert page.locator(".kw-badge-best").count() == 1
        assert page.locator(".kw-tile-best .kw-modelled").first.is_visible()
        page.screenshot(path=book.shots / "story-board.png")

    def test_looking_at_its_diff_and_why(self, book):
        page = book.page
        page.locator(".kw-tr", has=page.locator(".kw-badge-best")).first.click()
        page.get_by_role("tab", name="Diff").first.click()
        page.get_by_label("Compare with").select_option("t:reference")
        page.wait_for_selector(".kw-tabpanel .cm-deletedChunk, .kw-tabpanel .cm-merge-a")
        page.get_by_role("tab", name="Why").first.click()
        text = page.locator(".kw-tabpanel").first.inner_text()
        assert "Diagnosis" in text and re.search(r"the kernel takes|kernels take", text)
        assert "interpreter" in text

    def test_accepting_it_puts_plain_code_below(self, book):
        page = book.page
        page.get_by_role("button", name="Accept").first.click()
        page.wait_for_selector(".kw-accept[data-tone=good]", timeout=180_000)
        source = book.sources()[2]
        assert "def scale_rows" in source and "import workbench" not in source
        assert book.outputs(2) == []
        assert book.metadata(2)["workbench"]["candidate"]
        assert book.sources()[1] == OP
        page.screenshot(path=book.shots / "story-accepted.png")

    def test_the_new_cell_runs_and_gives_what_the_op_gave(self, book):
        book.run(2)
        index = book.add("torch.testing.assert_close(scale_rows(x, weight), y); print('same')")
        book.run(index)
        assert "same" in book.text(index)

    def test_the_kernel_in_the_accepted_cell_is_judged_again(self, book):
        index = book.add(JUDGE_AGAIN)
        book.run(index, timeout=180)
        assert "RIGHT" in book.text(index)

    def test_a_planted_wrong_kernel_is_refused(self, book):
        index = book.add(WRONG)
        book.run(index, timeout=180)
        assert "WRONG" in book.text(index)
        page = book.page
        page.wait_for_selector(".kw-tbody .kw-verdict.kw-bad")
        page.locator(".kw-tr", has=page.locator(".kw-verdict.kw-bad")).first.click()
        page.wait_for_selector(".kw-tabpanel >> text=Witness")
        assert page.locator("[data-verb=accept]").first.is_disabled()
        with pytest.raises(AssertionError, match=r"wrong|right"):
            book.run(book.add("%evolve_kernel accept " + page.locator(".kw-inspector-id").first.inner_text()), timeout=120)

    def test_replacing_the_runs_own_cell(self, book):
        page = book.page
        page.locator(".kw-tr", has=page.locator(".kw-badge-best")).first.click()
        page.get_by_role("button", name="Replace cell").first.click()
        page.wait_for_selector(".kw-accept[data-tone=good]", timeout=180_000)
        assert book.sources()[1].startswith("# kernel-workbench:")
        assert book.metadata(1)["workbench"]["source_sha256"] == hashlib.sha256(book.sources()[1].encode()).hexdigest()

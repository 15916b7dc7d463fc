"""Code as plain text: until the editors have come, and for good where they don't."""

from __future__ import annotations

import pytest
from harness import deliver, messages, open_board, sent
from recorded_run import RecordedRun
from sample_reports import sample_reports
from sample_run import run_events

LATER = "window.editors = (asked) => { window.wanted = asked; };"
SEND = """async () => {
    const bytes = await (await fetch("/editors.js")).arrayBuffer();
    window.deliver({ type: "editors", request: window.wanted.request, error: "" }, [new DataView(bytes)]);
}"""


@pytest.fixture(scope="module")
def everything():
    run = RecordedRun(run_events(44)).play()
    run.reports = sample_reports(run.candidate("k1").candidate.source)
    return messages(run)


@pytest.fixture
def plain(page, everything):
    """A board whose editors have not come yet."""
    page.add_init_script(LATER)
    strange = open_board(page, everything)
    page.evaluate("window.model.set('selected', 'k2')")
    page.wait_for_function("window.wanted")
    yield page
    assert strange == [] and page.seen.errors == []


def tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def source(everything, name="k2"):
    return everything["details"][name]["detail"]["candidate"]["source"]


def bring(page):
    page.evaluate(SEND)


def test_they_are_asked_for_once_and_by_their_hash(plain):
    tab(plain, "Code")
    [asked] = sent(plain, "editors")
    assert len(asked["hash"]) == 64
    bring(plain)
    plain.wait_for_selector(".kw-tabpanel .cm-content")
    tab(plain, "Diff")
    plain.wait_for_selector(".kw-tabpanel .cm-deletedChunk, .kw-tabpanel .cm-merge-a")
    assert len(sent(plain, "editors")) == 1 and plain.locator(".kw-plain").count() == 0


def test_code_is_read_selected_and_scrolled_and_stays_in_its_place(plain, everything):
    tab(plain, "Code")
    text = plain.locator(".kw-plain-text")
    assert text.inner_text() == source(everything)
    numbers = plain.locator(".kw-plain-numbers").inner_text().split()
    assert numbers == [str(n + 1) for n in range(len(source(everything).split("\n")))]
    box = plain.locator(".kw-plain")
    box.focus()
    box.evaluate(
        "(box) => { box.style.maxHeight = '120px'; box.parentElement.style.flex = 'none'; box.parentElement.style.minHeight = '120px'; }"
    )
    box.evaluate("(box) => { box.parentElement.style.height = '120px'; box.scrollTop = 200; }")
    first = plain.evaluate("""() => { const box = document.querySelector('.kw-plain'), text = box.querySelector('.kw-plain-text');
        return box.scrollTop / ((text.offsetHeight - 8) / text.innerText.split('\\n').length); }""")
    assert first > 5
    bring(plain)
    plain.wait_for_function("document.querySelector('.kw-tabpanel .cm-scroller')?.scrollTop > 100")
    line = plain.evaluate("""() => { const box = document.querySelector('.kw-tabpanel .cm-scroller').getBoundingClientRect();
        const lines = [...document.querySelectorAll('.kw-tabpanel .cm-line')];
        return lines.find((line) => line.getBoundingClientRect().bottom > box.top + 1).textContent; }""")
    assert line == source(everything).split("\n")[int(first)]
    assert plain.evaluate("document.activeElement.className").startswith("cm-content")


def test_what_is_selected_is_not_taken_away(plain):
    tab(plain, "Code")
    plain.evaluate("getSelection().selectAllChildren(document.querySelector('.kw-plain-text'))")
    bring(plain)
    plain.wait_for_timeout(300)
    assert plain.locator(".kw-plain").count() == 1 and "triton" in plain.evaluate("getSelection().toString()")
    plain.evaluate("getSelection().removeAllRanges()")
    plain.wait_for_selector(".kw-tabpanel .cm-content")
    assert plain.locator(".kw-plain").count() == 0


def test_what_is_typed_stays_and_is_submitted(plain, everything):
    tab(plain, "Edit")
    area = plain.get_by_label("Edit k2")
    assert area.input_value() == source(everything)
    area.press("Control+Home")
    plain.keyboard.type("# mine\n")
    bring(plain)
    plain.wait_for_selector(".kw-tabpanel .cm-content")
    plain.keyboard.type("# too\n")  # the caret is where it was
    plain.get_by_role("button", name="Submit variant").click()
    [done] = sent(plain, "do")
    assert done["argument"] == "# mine\n# too\n" + source(everything) and done["option"] == "k2"


def test_an_edit_is_submitted_without_editors(plain, everything):
    tab(plain, "Edit")
    plain.get_by_label("Edit k2").fill("import triton\n")
    plain.get_by_role("button", name="Submit variant").click()
    assert sent(plain, "do")[0]["argument"] == "import triton\n"


def test_a_diff_is_both_texts(plain, everything):
    tab(plain, "Diff")
    plain.locator(".kw-tabpanel select").select_option("t:reference")
    seen = plain.locator(".kw-plain-text > span").all_inner_texts()
    added, removed = ([line[2:] for line in seen if line.startswith(mark)] for mark in "+−")
    reference = everything["snapshot"]["texts"]["reference"].split("\n")
    assert set(added) <= set(source(everything).split("\n")) and set(removed) <= set(reference) and added and removed
    bring(plain)
    plain.wait_for_selector(".kw-tabpanel .cm-deletedChunk, .kw-tabpanel .cm-merge-a")


def test_source_and_stage_light_each_other_up_in_plain_text(plain):
    tab(plain, "Compiler")
    box = plain.locator(".kw-side .kw-plain").first
    box.wait_for()
    box.focus()
    for _ in range(30):
        if plain.locator(".kw-side").nth(1).locator(".kw-plain-lit > div").count():
            break
        plain.keyboard.press("ArrowDown")
    words = plain.locator(".kw-linked-words").inner_text()
    assert words.startswith("Line ") and plain.locator(".kw-side").first.locator(".kw-plain-lit > div").count() == 1
    bring(plain)
    plain.wait_for_selector(".kw-side .cm-content")
    assert plain.locator(".kw-side").first.locator(".kw-linked-line").count() == 1  # it stays lit
    assert plain.locator(".kw-linked-words").inner_text() == words


def test_where_they_cant_be_had_it_says_why(plain):
    tab(plain, "Code")
    reason = "the workbench was updated after this kernel began: restart the kernel"
    request = plain.evaluate("window.wanted.request")
    deliver(plain, {"type": "editors", "request": request, "error": reason})
    assert reason in plain.locator(".kw-plain-why").inner_text()
    tab(plain, "Edit")
    assert reason in plain.locator(".kw-plain-why").inner_text() and plain.get_by_label("Edit k2").is_editable()


def test_where_a_page_refuses_modules_from_memory_it_says_so(page, everything):
    page.add_init_script("""document.addEventListener('DOMContentLoaded', () => {
        const policy = document.createElement('meta');
        policy.httpEquiv = 'Content-Security-Policy';
        policy.content = "script-src 'self' 'unsafe-inline' 'unsafe-eval'";
        document.head.append(policy); });""")
    open_board(page, everything)
    page.evaluate("window.model.set('selected', 'k2')")
    tab(page, "Code")
    page.wait_for_selector(".kw-plain-why:not([hidden])")
    assert "this page does not load them" in page.locator(".kw-plain-why").inner_text()
    assert "triton" in page.locator(".kw-plain-text").inner_text()


def test_boards_of_a_page_share_them(plain):
    bring(plain)
    plain.wait_for_function(
        "Object.getOwnPropertySymbols(globalThis).some((name) => name.description.startsWith('kernel-workbench editors'))"
    )
    plain.evaluate("""async () => {
        const copy = URL.createObjectURL(new Blob([await (await fetch('/board.js')).text()], { type: 'text/javascript' }));
        const other = document.body.appendChild(document.createElement('div'));
        other.id = 'other';
        (await import(copy)).default.render({ model: window.model, el: other });
    }""")  # another module, as another widget has
    other = plain.locator("#other")
    other.get_by_role("tab", name="Code", exact=True).click()
    other.locator(".kw-tabpanel .cm-content").wait_for()
    assert len(sent(plain, "editors")) == 1

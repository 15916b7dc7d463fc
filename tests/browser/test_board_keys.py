"""The board by keyboard, and by the rules that screen readers rely on."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import messages, open_board, sent
from recorded_run import RecordedRun
from sample_calls import sample_calls
from sample_reports import sample_reports
from sample_run import run_events

AXE = Path(__file__).parents[2] / "extensions" / "board" / "node_modules" / "axe-core" / "axe.min.js"
TABS = ("Why", "Code", "Diff", "Compiler", "Memory", "Trace", "Prompt", "Evidence", "Edit", "Log")
FOCUSED = "document.activeElement"


@pytest.fixture(scope="module")
def everything():
    stamped = run_events(44)
    run = RecordedRun(stamped, calls=sample_calls(stamped)).play()
    run.reports = sample_reports(run.candidate("k1").candidate.source)
    return messages(run)


@pytest.fixture
def shown(page, everything):
    open_board(page, everything)
    yield page
    assert page.seen.errors == []


def test_the_keys_are_listed_and_escape_goes_back(shown):
    shown.locator(".kw-table").focus()
    shown.keyboard.press("?")
    keys = shown.locator("dialog.kw-help")
    assert keys.is_visible() and "judges one more variant" in keys.inner_text()
    shown.keyboard.press("Escape")
    assert not keys.is_visible()
    assert "kw-table" in shown.evaluate(f"{FOCUSED}.className")


def test_single_keys(shown):
    shown.locator(".kw-table").focus()
    shown.keyboard.press("p")
    assert sent(shown, "do")[-1]["verb"] == "pause"
    first = shown.locator(".kw-inspector-id").inner_text()
    shown.keyboard.press("j")
    assert shown.locator(".kw-inspector-id").inner_text() != first
    shown.keyboard.press("k")
    assert shown.locator(".kw-inspector-id").inner_text() == first
    shown.keyboard.press("8")
    assert shown.evaluate(f"{FOCUSED}.textContent") == "Evidence"
    shown.keyboard.press("w")
    assert shown.locator(".kw-left").is_hidden()
    shown.keyboard.press("w")
    shown.keyboard.press("g")
    assert shown.evaluate(f"{FOCUSED}.getAttribute('class')") == "kw-chart"
    shown.keyboard.press("/")
    assert shown.evaluate(f"{FOCUSED}.type") == "search"


def test_a_key_that_can_do_nothing_says_why(shown):
    shown.locator(".kw-table").focus()
    shown.keyboard.press("s")
    assert shown.locator(".kw-controls .kw-answer").inner_text() == "It is running."
    assert sent(shown, "do") == []


def test_keys_are_letters_where_one_types(shown):
    shown.locator(".kw-table").focus()
    shown.keyboard.press("h")
    shown.keyboard.type("pass w 1?")
    assert shown.get_by_label("A hint for the search").input_value() == "pass w 1?"
    shown.get_by_role("tab", name="Edit").click()
    shown.locator(".kw-tabpanel .cm-content").click()
    shown.keyboard.type("sap")
    assert sent(shown, "do") == [] and not shown.locator("dialog.kw-help").is_visible()


def test_one_head_and_one_tab_are_in_the_tab_order(shown):
    assert shown.locator(".kw-sort[tabindex='0']").count() == 1 and shown.locator("[role=tab][tabindex='0']").count() == 1
    shown.locator(".kw-sort[tabindex='0']").focus()
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate(f"{FOCUSED}.textContent") == "Verdict"
    assert shown.locator(".kw-sort[tabindex='0']").inner_text() == "Verdict"
    shown.keyboard.press("Enter")
    shown.locator("[aria-sort=ascending]", has_text="Verdict").wait_for()


def test_everything_can_be_reached_with_tab(shown):
    """From the first control to the last, without a trap, and back."""
    shown.locator("[data-verb=pause]").focus()
    seen = []
    for _ in range(60):
        shown.keyboard.press("Tab")
        name = shown.evaluate(
            f"{FOCUSED} === document.body ? '' : {FOCUSED}.dataset.verb ?? {FOCUSED}.getAttribute('role') ?? {FOCUSED}.className"
        )
        if not name:
            break
        seen.append(name)
    for wanted in ("stop", "cancel", "grid", "accept", "branch", "pin", "ban", "tab", "tabpanel"):
        assert any(wanted in name for name in seen), (wanted, seen)
    assert len(seen) < 60


def test_without_motion_nothing_moves(shown):
    moving = shown.evaluate("""[...document.querySelectorAll('.kw-root *')].filter((one) =>
        getComputedStyle(one).animationName !== 'none' || getComputedStyle(one, '::before').animationName !== 'none').length""")
    assert moving == 0


@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
def test_axe_finds_nothing_serious(page, everything, theme):
    open_board(page, everything, theme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = []
    for tab in TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_timeout(150)
        where = "'.kw-root'" if tab == "Why" else "'.kw-panel-inspector'"
        result = page.evaluate(f"axe.run({where}, {{resultTypes: ['violations']}})")
        found += [
            f"{tab}: {one['id']} {node['html'][:90]} {node['failureSummary'][:160]}"
            for one in result["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]
    assert found == []

"""The board's module alone in a page: what it does with messages, keys, sizes and ten thousand variants."""

from __future__ import annotations

import base64
import json
import re

import pytest
from harness import deliver, messages, open_board, sent
from recorded_run import RecordedRun
from sample_run import CELL, run_events

from workbench.board.feed import Feed
from workbench.board.packing import pack_columns
from workbench.candidate import NOT_UPDATED

SELECTED = "document.querySelector('.kw-inspector-id')?.textContent"


@pytest.fixture(scope="module")
def modelled():
    return messages(RecordedRun(run_events(44)).play())


@pytest.fixture(scope="module")
def measured():
    return messages(RecordedRun(run_events(60, measured=True)).play())


@pytest.fixture
def shown(page, modelled):
    strange = open_board(page, modelled)
    yield page
    assert strange == [] and page.seen.errors == []


def rows(page):
    """Ids of the rows in sight, from top to bottom, once the frame is drawn that a click asked for."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate("""[...document.querySelectorAll('.kw-tbody .kw-tr:not([hidden])')]
        .sort((a, b) => Number(a.getAttribute('aria-rowindex')) - Number(b.getAttribute('aria-rowindex'))).map((row) => row.dataset.id)""")


def answer(page, kind, **fields):
    """From now on every message of that kind is answered with these fields, and with the id of its request."""
    page.evaluate(
        """([kind, fields]) => { window.asked = (m) => m.type === kind && setTimeout(() => window.deliver(
            {...fields, request: m.request, id: m.id, place: m.place, text: `did ${m.verb} ${m.argument}`})); }""",
        [kind, fields],
    )


ACCEPTED = {
    "type": "accept",
    "stage": "ready",
    "message": "",
    "code": "y = 2",
    "cell": "",
    "expected_hash": "",
    "provenance": {},
    "widget": "",
}


# ---- messages


def test_a_gap_asks_for_a_snapshot_once(shown, modelled):
    snapshot = modelled["snapshot"]
    delta = {"type": "delta", "seq": snapshot["seq"] + 3, "upserts": [], "points": [], "log": [], "header": snapshot["header"]}
    asked = len(sent(shown, "snapshot"))
    shown.evaluate("window.answer = null")  # the answer is on its way for the rest of this test
    deliver(shown, delta)
    deliver(shown, {**delta, "seq": delta["seq"] + 1})
    assert len(sent(shown, "snapshot")) == asked + 1


def test_deltas_in_turn_change_rows_and_head(shown, modelled):
    snapshot = modelled["snapshot"]
    row = {
        **next(row for row in snapshot["upserts"] if row["verdict"] == "right"),
        "id": "k900",
        "order": 900,
        "time_us": 31.5,
        "island": "wild",
    }
    best = {"id": "k900", "time_us": 31.5, "low_us": 31.5, "high_us": 31.5, "modelled": True, "speedup": None}
    header = {**snapshot["header"], "best": best, "state": "paused"}
    deliver(shown, {"type": "delta", "seq": snapshot["seq"] + 1, "upserts": [row], "points": [], "log": [], "header": header})
    shown.wait_for_selector("[data-id=k900] .kw-badge-best")
    assert rows(shown)[0] == "k900"
    assert shown.locator(".kw-state").inner_text() == "paused"
    assert shown.get_by_role("button", name="Resume").is_enabled() and shown.get_by_role("button", name="Pause").count() == 0
    assert "New best: k900" in shown.locator(".kw-head .kw-sr").inner_text()


def look(page):
    """All that the table and the chart say."""
    rows(page)
    return page.evaluate("""[...document.querySelectorAll('.kw-filters, .kw-legend, .kw-plot, .kw-front, .kw-tile, .kw-state')]
        .map((element) => element.matches('svg') ? element.innerHTML : element.innerText)""") + [
        page.locator(f"[data-id={name}]").inner_text() for name in rows(page)
    ]  # fmt: skip


def test_a_snapshot_as_it_travels_is_the_same(shown, modelled):
    before = look(shown)
    snapshot = modelled["snapshot"]
    columns, buffers = pack_columns(
        *({name: [one[name] for one in snapshot[of]] for name in snapshot[of][0]} for of in ("upserts", "points"))
    )
    packed = {**snapshot, **columns, "type": "packed"}
    shown.evaluate(
        """([message, buffers]) => window.deliver(JSON.parse(message),
            buffers.map((text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer)))""",
        [json.dumps(packed), [base64.b64encode(one).decode() for one in buffers]],
    )
    assert look(shown) == before


@pytest.mark.parametrize("sort", ["Time", "Verdict", "Island", "Lineage"])
def test_a_run_that_was_followed_looks_as_one_that_is_opened(page, sort):
    run, told = RecordedRun(run_events(40)).play(60), []
    feed = Feed(run, told.append)
    feed.snapshot()
    strange = open_board(page, {**messages(run), "snapshot": told[0]})
    page.evaluate("window.model.set('selected', 'k3')")
    page.get_by_role("button", name=sort, exact=True).click()
    for _ in range(12):
        run.play(12)
        feed.flush()
    run.play()
    feed.flush()
    for message in told[1:]:
        deliver(page, message)
        rows(page)
    followed = look(page)
    feed.snapshot()
    feed.close()
    deliver(page, told[-1])
    assert look(page) == followed and len(told) > 10
    assert strange == [] and page.seen.errors == []


def test_a_lost_last_message_is_noticed(shown, modelled):
    asked = len(sent(shown, "snapshot"))
    shown.evaluate("(seq) => window.model.set('seq', seq)", modelled["snapshot"]["seq"] + 5)
    shown.wait_for_function("(asked) => window.sent.filter((m) => m.type === 'snapshot').length > asked", arg=asked, timeout=5000)


def test_details_are_fetched_once_and_again_after_a_change(shown, modelled):
    first = rows(shown)[1]
    for id in (first, rows(shown)[2], first):
        shown.locator(f"[data-id={id}]").click()
    assert [message["id"] for message in sent(shown, "detail")].count(first) == 1
    row = next(row for row in modelled["snapshot"]["upserts"] if row["id"] == first)
    delta = {"type": "delta", "seq": modelled["snapshot"]["seq"] + 1, "upserts": [{**row, "evaluations": row["evaluations"] + 1}]}
    deliver(shown, {**delta, "points": [], "log": [], "header": modelled["snapshot"]["header"]})
    shown.wait_for_function("(id) => window.sent.filter((m) => m.type === 'detail' && m.id === id).length === 2", arg=first)


def test_what_a_candidate_wrote_is_text(page, modelled):
    text = "<img src=x onerror=window.owned=1><script>window.owned=1</script>"
    changed = json.loads(json.dumps(modelled).replace("Loop over column tiles", text.replace('"', "'")))
    for message in changed["details"].values():
        for evaluation in message["detail"]["evaluations"]:
            evaluation["log"] = evaluation["reason"] = text
    open_board(page, changed)
    page.get_by_role("tab", name="Log").click()
    assert "<img src=x" in page.locator(".kw-pre").inner_text()
    assert page.evaluate("window.owned") is None


# ---- the person's keys and clicks


def test_the_table_by_keyboard(shown):
    grid = shown.get_by_role("grid", name="Variants")
    grid.focus()
    for key, at in (("Home", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        shown.keyboard.press(key)
        assert shown.evaluate(SELECTED) == rows(shown)[at]
    shown.wait_for_function(
        """(id) => { const grid = document.querySelector('.kw-table');
        return document.getElementById(grid.getAttribute('aria-activedescendant'))?.dataset.id === id; }""",
        arg=rows(shown)[1],
    )
    shown.keyboard.press("End")
    shown.wait_for_selector(f"[aria-rowindex='{grid.get_attribute('aria-rowcount')}'][aria-selected=true]")
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.getAttribute('role')") == "tab"
    shown.keyboard.press("ArrowRight")
    assert shown.locator("[role=tab][aria-selected=true]").inner_text() == "Code"


def test_the_chart_by_keyboard_and_pointer(shown):
    chart = shown.locator(".kw-chart")
    assert re.search(r"\d+ evaluations, \d+ right", chart.get_attribute("aria-label"))
    chart.focus()
    shown.keyboard.press("Home")
    shown.keyboard.press("ArrowRight")
    assert "k" in shown.locator(".kw-panel-chart [aria-live]").inner_text()
    shown.keyboard.press("Enter")
    by_key = shown.evaluate(SELECTED)
    box = chart.bounding_box()
    shown.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20)
    for step in range(40):
        shown.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20 + 5 * step)
        if shown.locator(".kw-tip").is_visible():
            break
    tip = shown.locator(".kw-tip b").inner_text()
    shown.mouse.down()
    shown.mouse.up()
    assert shown.evaluate(SELECTED) == tip.split(".")[0]
    assert by_key


def test_sorting_filtering_and_lineage(shown, modelled):
    every = modelled["snapshot"]["upserts"]
    shown.get_by_role("button", name="Variant", exact=True).click()
    assert rows(shown)[:3] == ["k1", "k2", "k3"]
    assert shown.locator("[aria-sort=ascending]").count() == 1
    shown.get_by_role("button", name="Variant", exact=True).click()
    assert rows(shown)[0] == every[-1]["id"]
    shown.get_by_label("Filter by verdict").select_option("crashed")
    crashed = {row["id"] for row in every if row["verdict"] == "crashed"}
    assert set(rows(shown)) == crashed
    shown.get_by_label("Filter by verdict").select_option("")
    shown.get_by_label("Filter by island").select_option("wild")
    assert set(rows(shown)) <= {row["id"] for row in every if row["island"] == "wild"}
    shown.get_by_label("Filter by island").select_option("")
    shown.get_by_label("Find in id").fill("no such thing")
    shown.wait_for_selector(".kw-panel-table .kw-empty >> text=clear the search")
    shown.get_by_label("Find in id").fill("")
    shown.get_by_role("button", name="Lineage").click()
    parents = {row["id"]: row["parents"] for row in every}
    order = rows(shown)
    child = next(id for id in order if parents[id] and parents[id][0] in order)
    assert order.index(parents[child][0]) < order.index(child)
    assert shown.locator(f"[data-id={child}] .kw-branch").count() == 1


def test_the_parent_is_a_link(shown):
    row = shown.locator(".kw-tbody .kw-tr:not([hidden])", has=shown.locator("[data-select]")).first
    parent = row.locator("[data-select]").first
    wanted = parent.get_attribute("data-select")
    parent.click()
    assert shown.evaluate(SELECTED) == wanted


def test_buttons_send_verbs_and_say_the_answer(shown):
    answer(shown, "do", type="said", level="info")
    shown.get_by_role("button", name="Pause").click()
    shown.wait_for_selector(".kw-controls >> text=did pause")
    answer(shown, "do", type="said", level="error")
    shown.get_by_role("button", name="Stop").click()
    shown.wait_for_selector(".kw-answer[data-level=error] >> text=did stop")
    shown.get_by_role("button", name="Ban idea").click()
    assert shown.get_by_label("The idea to ban").input_value()
    shown.get_by_role("button", name="Ban this").click()
    shown.get_by_role("button", name="Branch", exact=True).click()
    shown.get_by_role("button", name="Pin", exact=True).click()
    verbs = [message["verb"] for message in sent(shown, "do")]
    assert verbs == ["pause", "stop", "ban", "branch", "pin"]
    assert shown.get_by_role("button", name="Step").is_disabled()
    assert shown.get_by_role("button", name="Step").get_attribute("title") == "It is running."


def test_an_answer_to_another_view_is_not_shown(shown):
    deliver(shown, {"type": "said", "request": "somebody else", "level": "info", "text": "not for you"})
    deliver(shown, {"type": "accept", "request": "somebody else", "id": "k1", "stage": "ready", "code": "x", "place": "below"})
    assert shown.locator("text=not for you").count() == 0 and shown.locator(".kw-accept").is_hidden()


def test_editing_and_submitting(shown):
    answer(shown, "do", type="said", level="info")
    first = rows(shown)[0]
    shown.locator(f"[data-id={first}]").click()
    shown.get_by_role("tab", name="Edit").click()
    submit = shown.get_by_role("button", name="Submit variant")
    assert submit.is_disabled()
    shown.locator(".kw-tabpanel .cm-content").click()
    shown.keyboard.press("Control+Home")
    shown.keyboard.type("# mine\n")
    other = rows(shown)[1]
    shown.locator(f"[data-id={other}]").click()
    shown.locator(f"[data-id={first}]").click()
    assert shown.locator(".kw-tabpanel .cm-line").first.inner_text() == "# mine"  # the draft is kept
    submit.click()
    shown.wait_for_selector("text=did submit")
    message = sent(shown, "do")[-1]
    assert message["verb"] == "submit" and message["argument"].startswith("# mine\n") and message["option"] == first


# ---- accept, without a notebook to put it into


def test_without_a_notebook_the_ladder_goes_on(shown):
    answer(shown, "accept", **ACCEPTED)
    shown.get_by_role("button", name="Accept").click()
    shown.wait_for_selector(".kw-accept[data-tone=fair]")
    best = shown.evaluate(SELECTED)
    assert f"%evolve_kernel accept {best}" in shown.locator(".kw-accept").inner_text()
    shown.get_by_role("button", name="Copy code").click()
    shown.wait_for_selector(".kw-accept >> text=Copied")
    assert shown.evaluate("navigator.clipboard.readText()") == "y = 2"
    applied = sent(shown, "applied")[0]
    assert not applied["ok"] and "does not let a widget change" in applied["reason"]


def test_a_refusal_is_shown_with_its_reason(shown):
    answer(shown, "accept", **{**ACCEPTED, "stage": "refused", "message": "it is wrong on new seeds", "code": ""})
    shown.get_by_role("button", name="Accept").click()
    shown.wait_for_selector(".kw-accept[data-tone=bad] >> text=it is wrong on new seeds")


def choose(page, name):
    page.evaluate("(id) => window.model.set('selected', id)", name)
    page.wait_for_function(f"(id) => {SELECTED} === id", arg=name)


def test_only_what_passes_can_be_accepted(shown, modelled):
    every = modelled["snapshot"]["upserts"]
    choose(shown, next(row["id"] for row in every if row["verdict"] in ("wrong", "crashed", "refused")))
    assert shown.locator("[data-verb=accept]").is_disabled()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"verdict": "lower_precision"}, "less exact than the reference's"),
        ({"verdict": "not_judged", "reason": "it needs a GPU"}, "Nobody could check it here (it needs a GPU)"),
        ({"labels": ["fast", f"{NOT_UPDATED}norm.running_mean"]}, "It does not update norm.running_mean, as the reference does."),
    ],
    ids=["lower precision", "not judged", "stale buffers"],
)
@pytest.mark.parametrize("verb", ["accept", "replace"])
def test_what_needs_consent_is_accepted_once_it_was_given(page, modelled, change, says, verb):
    snapshot = modelled["snapshot"]
    first = next(row for row in snapshot["upserts"] if row["verdict"] == "right")
    rows = [{**row, **(change if row is first else {})} for row in snapshot["upserts"]]
    open_board(page, {**modelled, "snapshot": {**snapshot, "upserts": rows}})
    choose(page, first["id"])
    place = {"accept": "below", "replace": "replace"}[verb]
    assert "Asks for your consent first." in page.locator("[data-verb=accept]").get_attribute("title")
    page.locator(f"[data-verb={verb}]").click()
    assert says in page.locator(".kw-accept").inner_text()
    page.get_by_role("button", name="Dismiss").click()
    assert page.locator(".kw-accept").is_hidden() and sent(page, "accept") == []
    page.locator(f"[data-verb={verb}]").click()
    page.get_by_role("button", name="Accept all the same").click()
    [asked] = sent(page, "accept")
    assert asked["consent"] is True and (asked["id"], asked["place"]) == (first["id"], place)


def test_what_only_the_second_judging_shows_is_asked_for_too(shown):
    refused = {"stage": "refused", "message": "k1 does not update norm.running_var", "code": "", "consent": True}
    answer(shown, "accept", **{**ACCEPTED, **refused})
    shown.get_by_role("button", name="Accept", exact=True).click()
    shown.get_by_role("button", name="Accept all the same").click()
    assert [message["consent"] for message in sent(shown, "accept")] == [False, True]


# ---- what it says


def test_a_modelled_run_never_speaks_of_speedup(shown):
    text = shown.locator(".kw-board").inner_text()
    assert "no GPU: modelled for cuda:90" in text and "Time per evaluation, modelled for cuda:90" in text
    assert not re.search(r"\d×\s+over", text)
    assert shown.locator(".kw-tile-best .kw-modelled").is_visible()


def test_a_measured_run_shows_intervals_and_speedup(page, measured):
    open_board(page, measured)
    assert re.search(r"\d×\s+over torch\.compile", page.locator(".kw-tile-best").inner_text())
    assert "modelled" not in page.locator(".kw-head").inner_text()


def test_the_witness_of_a_wrong_variant(shown, modelled):
    for row in modelled["snapshot"]["upserts"]:
        if row["verdict"] == "wrong":
            shown.evaluate("(id) => window.model.set('selected', id)", row["id"])
            shown.wait_for_selector(".kw-facts >> text=0.734375")
            assert "last tile of dim 1" in shown.locator(".kw-tabpanel").inner_text()
            return
    pytest.fail("the sample has no wrong variant")


@pytest.mark.parametrize("count", [1, 3, 9])
def test_no_panel_is_ever_empty(page, count):
    open_board(page, messages(RecordedRun(run_events(44)).play(count)))
    for tab in ("Why", "Code", "Diff", "Compiler", "Memory", "Trace", "Prompt", "Evidence", "Edit", "Log"):
        page.get_by_role("tab", name=tab).click()
        assert page.locator(".kw-tabpanel").inner_text().strip(), tab
    assert "rmsnorm for cuda:90" in page.locator(".kw-log").inner_text()  # the run's log needs no variant
    assert page.locator(".kw-panel-table").inner_text().strip()
    assert page.seen.errors == []


def test_a_stored_run_can_only_be_resumed(page):
    open_board(page, messages(RecordedRun(run_events(20), live=False).play()))
    for name in ("Step", "Auto", "Stop", "Cancel", "Hint"):
        assert page.get_by_role("button", name=name, exact=True).is_disabled(), name
    assert page.get_by_role("button", name="Resume").is_enabled()
    assert "no judge is running" in page.locator(".kw-why-not").inner_text()


def test_an_ended_run_says_why(page):
    open_board(page, messages(RecordedRun(run_events(20, ended=True)).play()))
    assert "20 evaluations are used up" in page.locator(".kw-why-not").inner_text()
    assert page.get_by_role("button", name="Resume").is_enabled()


# ---- looks


@pytest.mark.parametrize("theme", ["light", "dark", "contrast", "none"])
@pytest.mark.parametrize("width", [380, 700, 1360])
def test_nothing_runs_out_of_the_board(page, modelled, theme, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_board(page, modelled, theme)
    outside = page.evaluate("""() => {
        const board = document.querySelector('.kw-board').getBoundingClientRect();
        return [...document.querySelectorAll('.kw-board button, .kw-board input, .kw-board select, .kw-tile, .kw-chart')]
            .filter((e) => e.offsetParent && !e.closest('.kw-table, .kw-scroll-x, .kw-fill, .kw-tablist'))
            .map((e) => [e.className.baseVal ?? e.className, e.getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.left < board.left - 1 || box.right > board.right + 1)).map(([name]) => name);
    }""")
    assert outside == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark", "contrast", "none"])
def test_text_can_be_read(page, modelled, theme):
    """Contrast of every piece of text in sight: 4.5 to 1, as WCAG asks; disabled controls are exempt."""
    open_board(page, modelled, theme)
    poor = page.evaluate("""() => {
        const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
        const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
        const ground = (e) => { const own = rgba(getComputedStyle(e).backgroundColor);
            if (own[3] === 1 || !e.parentElement) return own[3] ? own.slice(0, 3) : [255, 255, 255];
            return over(own, ground(e.parentElement)); };
        const light = (rgb) => { const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const found = new Set();
        for (const e of document.querySelectorAll('.kw-board *')) {
            const own = [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
            if (!own || !e.checkVisibility() || e.closest('.kw-sr, :disabled, option, style')) continue;
            const below = ground(e);
            const style = getComputedStyle(e);
            const colour = e instanceof SVGElement ? style.fill : style.color;
            const [a, b] = [light(over(rgba(colour), below)), light(below)];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) found.add(`${e.className.baseVal ?? e.className} "${e.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
        }
        return [...found];
    }""")
    assert poor == []


def test_controls_have_names_and_focus_is_seen(shown):
    nameless = shown.evaluate("""[...document.querySelectorAll(
        '.kw-board button, .kw-board input, .kw-board select, .kw-board [tabindex]')].filter((e) =>
        !(e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))).map((e) => e.outerHTML)""")
    assert nameless == []
    shown.keyboard.press("Tab")
    outline = shown.evaluate(
        "getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"
    )
    assert outline == "solid2px"


def test_the_words_are_explained(shown):
    shown.locator(".kw-words summary").click()
    text = shown.locator(".kw-words").inner_text()
    for word in ("Island", "Floor", "Modelled", "Pause", "Stop", "Cancel", "Resume", "Occupancy"):
        assert f"{word}:" in text


# ---- rows

LOOKS = """[...document.querySelectorAll('.kw-tbody .kw-tr:not([hidden])')]
    .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).slice(0, 12).map((row) => [row.dataset.id, row.ariaSelected, row.innerText,
        [...row.querySelectorAll('[title]')].map((one) => one.title), row.querySelector('.kw-verdict').className,
        [...row.querySelectorAll('.kw-image:not([hidden])')].map((one) => getComputedStyle(one).backgroundImage),
        [...row.querySelectorAll('.kw-reached:not([hidden])')].map((one) => [one.className, getComputedStyle(one).backgroundSize])])"""


def test_a_row_that_is_used_again_looks_as_a_new_one(page, measured):
    open_board(page, measured)
    first = rows(page) and page.evaluate(LOOKS)
    assert len({look[4] for look in first}) == 1 and all(image.startswith("url(") for look in first for image in look[5])
    for name in ("Verdict", "Island", "Lineage", "Plan", "Variant", "Verdict", "Verdict"):  # the last shows failures first
        page.get_by_role("button", name=name, exact=True).click()
        rows(page)
    failed = page.evaluate(LOOKS)
    assert all(look[4] != first[0][4] for look in failed)
    page.get_by_role("button", name="Time", exact=True).click()
    rows(page)
    assert page.evaluate(LOOKS) == first


def test_what_is_drawn_in_rows_follows_the_theme(shown):
    images = (
        "[...document.querySelectorAll('.kw-tbody .kw-tr:not([hidden]) .kw-image')].map((one) => getComputedStyle(one).backgroundImage)"
    )
    light = rows(shown) and shown.evaluate(images)
    shown.evaluate("""() => {
        document.documentElement.style.setProperty('--jp-ui-font-color1', '#ffffff');
        document.body.setAttribute('data-jp-theme-name', 'another');
    }""")
    rows(shown)
    dark = shown.evaluate(images)
    assert len(dark) == len(light) and not set(dark) & set(light)


# ---- ten thousand variants


def test_ten_thousand_variants(page):
    sent_all = messages(RecordedRun(run_events(10_000)).play())
    text = json.dumps(sent_all)
    open_board(page, {"snapshot": {**sent_all["snapshot"], "upserts": [], "points": []}, "details": {}})
    page.evaluate("(text) => { window.big = JSON.parse(text).snapshot; }", text)
    opened = page.evaluate("""() => new Promise((done) => {
        const began = performance.now();
        window.deliver(window.big);
        const look = () => document.querySelectorAll('.kw-tbody .kw-tr').length > 8
            ? done(performance.now() - began) : requestAnimationFrame(look);
        look(); })""")
    assert page.locator(".kw-tbody .kw-tr").count() < 80
    chunks = -(-len(sent_all["snapshot"]["points"]) // 256)
    page.wait_for_function("(chunks) => document.querySelectorAll('.kw-plot > g').length === chunks", arg=chunks)  # in idle time
    cpu = cpu_ms_per_frame(page, frames=100, step=4 * 27)
    grid = page.get_by_role("grid", name="Variants")
    assert grid.get_attribute("aria-rowcount") == "10001"
    grid.focus()
    page.keyboard.press("End")
    page.wait_for_selector("[aria-rowindex='10001'][aria-selected=true]")
    print(f"opened in {opened:.0f} ms; scrolling four rows a frame takes {cpu:.1f} ms of scripts, styles and layout")
    assert opened < 1000
    assert cpu < 12  # of the 16.7 ms that a frame has


def cpu_ms_per_frame(page, frames, step):
    """CPU time of the board's scripts, styles and layout in each frame while the table is scrolled: other processes don't count."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
        return metrics["ScriptDuration"] + metrics["LayoutDuration"] + metrics["RecalcStyleDuration"]

    before = spent()
    page.evaluate(
        """([frames, step]) => new Promise((done) => {
            const grid = document.querySelector('.kw-table');
            let left = frames;
            const next = () => { grid.scrollTop += step; (left -= 1) ? requestAnimationFrame(next) : done(); };
            requestAnimationFrame(next); })""",
        [frames, step],
    )
    return (spent() - before) * 1000 / frames


def test_the_cell_is_offered_for_the_diff(shown):
    shown.get_by_role("tab", name="Diff").click()
    shown.get_by_label("Compare with").select_option("t:cell")
    assert CELL.splitlines()[2] in shown.locator(".kw-tabpanel .cm-content").first.inner_text()

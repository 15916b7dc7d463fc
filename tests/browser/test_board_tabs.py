"""The board's tabs, in a page of their own: what each shows of the records, and what it sends."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from harness import deliver, messages, open_board, sent
from recorded_run import RecordedRun
from sample_calls import sample_calls
from sample_reports import counters, measured_trace, sample_reports
from sample_run import REFERENCE, run_events

from workbench.records import encode

EVENTS = run_events(44)
ASKED = next(row for row in RecordedRun(EVENTS).play().rows() if row["id"] == "k6")
"""A variant that a model wrote at the second attempt."""


@pytest.fixture(scope="module")
def run():
    made = RecordedRun(EVENTS, calls=sample_calls(EVENTS)).play()
    made.reports = sample_reports(made.candidate("k1").candidate.source)
    return made


@pytest.fixture(scope="module")
def everything(run):
    return messages(run)


@pytest.fixture
def shown(page, everything):
    strange = open_board(page, everything)
    yield page
    assert strange == [] and page.seen.errors == []


def look(page, tab, variant=""):
    """Opens a tab of a variant, and gives its text."""
    if variant:
        page.evaluate("(id) => window.model.set('selected', id)", variant)
        page.wait_for_function("(id) => document.querySelector('.kw-inspector-id')?.textContent === id", arg=variant)
    page.get_by_role("tab", name=tab, exact=True).click()
    panel = page.locator(".kw-tabpanel")
    page.wait_for_function("!/^Reading|takes a few seconds/.test(document.querySelector('.kw-tabpanel').innerText.trim())")
    return panel.inner_text()


# ---- prompt


def test_what_a_model_was_asked_and_what_it_cost(shown):
    text = look(shown, "Prompt", "k6")
    assert "2 calls to a model" in text and "(estimated)" in text and "$0.0041" in text
    assert "This call failed: the endpoint broke off after 40 tokens" in text
    assert "best reward a dollar so far" in text and "qwen3-coder" in text and "first words after 0.8 s" in text
    assert "Keep the row in registers" in text  # the reply
    assert "2 048 from the cache".replace(" ", "\u2009", 1) in text
    system = shown.locator(".kw-message", has_text="system").first
    assert not system.evaluate("(one) => one.open")  # long, and the same in every call
    shown.locator(".kw-message[open] .kw-button").first.click()
    assert len(shown.evaluate("navigator.clipboard.readText()")) > 1000


def test_where_no_model_was_asked_the_prompt_that_it_would_have_got(shown):
    text = look(shown, "Prompt", "k4")
    assert "no model was asked" in text and "It was not sent." in text
    assert "rms" in shown.locator(".kw-message", has_text="user").first.inner_text().lower()
    assert "The brief, b4" in text


def test_the_cards_and_experts_that_a_variant_cites(shown):
    text = look(shown, "Prompt", "k3")
    assert "experience card" in text and "read it once, keep it" in text
    assert "Cards that were shown and not cited: card-12." in text


# ---- models at work


def write(page, *answers):
    made = [{"model": "qwen3-coder", "why": "", "seconds": 1.0, "failed": "", **one} for one in answers]
    deliver(page, {"type": "writing", "answers": made})


def test_answers_appear_as_they_are_written(shown):
    write(shown, {"brief": "b45", "at": 0, "text": "PLAN: keep "}, {"brief": "b46", "at": 0, "text": "", "model": "other"})
    write(shown, {"brief": "b45", "at": 11, "text": "the row"}, {"brief": "b46", "at": 0, "text": "PLAN: split"})
    assert shown.locator(".kw-typing").all_inner_texts() == ["PLAN: keep the row", "PLAN: split"]
    assert "≈ 6 tokens" in shown.locator(".kw-pane").first.inner_text()
    assert "other is writing an answer to b46" in shown.locator(".kw-live > .kw-sr").inner_text()
    assert re.search(r"Tokens\s+≈", shown.locator(".kw-burn").inner_text())  # counted here until the endpoint says
    write(shown, {"brief": "b46", "at": 11, "text": " it"})
    assert "whole" in shown.locator(".kw-pane").first.inner_text() and shown.locator(".kw-pane").count() == 2
    shown.get_by_role("button", name="Cancel run").last.click()
    assert sent(shown, "do")[-1]["verb"] == "cancel"


def test_a_lost_piece_is_asked_for_and_a_failed_attempt_is_said(shown):
    write(shown, {"brief": "b45", "at": 0, "text": "PLAN"})
    asked = len(sent(shown, "writing"))
    write(shown, {"brief": "b45", "at": 90, "text": "much later"})
    assert len(sent(shown, "writing")) == asked + 1
    assert shown.locator(".kw-typing").inner_text() == "PLAN"
    write(shown, {"brief": "b45", "at": 0, "text": "", "failed": "rate limited"})
    assert shown.locator(".kw-typing").inner_text() == "The last attempt failed: rate limited"


def test_what_a_model_writes_is_text(shown):
    write(shown, {"brief": "b45", "at": 0, "text": "<img src=x onerror=window.owned=1>"})
    assert "<img" in shown.locator(".kw-typing").inner_text() and shown.evaluate("window.owned") is None


def test_the_budget_burns_between_judgements(shown):
    def seconds():
        text = shown.locator(".kw-burn-item").nth(1).inner_text()
        minutes, rest = re.search(r"≈ (\d+) min (?:(\d+) s )?of 30 min", text).groups()
        return 60 * int(minutes) + int(rest or 0)

    began = seconds()
    before = shown.locator(".kw-burn-value").nth(1).inner_text()
    shown.wait_for_function("(text) => document.querySelectorAll('.kw-burn-value')[1].textContent !== text", arg=before)
    assert seconds() > began
    assert "1 on the way" in shown.locator(".kw-burn").inner_text()


# ---- evidence


def test_what_a_verdict_rests_on(shown, run):
    text = look(shown, "Evidence")
    best = shown.locator(".kw-inspector-id").inner_text()
    assert "Triton's interpreter ran the variant on cut-down shapes" in text and "Nothing was timed" in text
    assert hashlib.sha256(run.candidate(best).candidate.source.encode()).hexdigest() in text
    assert hashlib.sha256(REFERENCE.encode()).hexdigest() in text
    assert "bubblewrap" in text and "neighbour shape" in text
    shown.get_by_role("button", name="Copy", exact=True).last.click()
    code = shown.evaluate("navigator.clipboard.readText()")
    assert f'run.candidate("{best}")' in code and run.id in code
    compile(code, "replay", "exec")


def test_a_wrong_one_names_the_input_set_and_gives_its_seed(shown, everything):
    wrong = next(row["id"] for row in everything["snapshot"]["upserts"] if row["verdict"] == "wrong")
    text = look(shown, "Evidence", wrong)
    assert "out of bounds, see the witness" in text and "seed=1187" in text
    assert "4.98 of its bound, beyond it" in shown.locator(".kw-gauge").get_attribute("aria-label")


def test_a_measured_one_shows_its_blocks(page):
    open_board(page, messages(RecordedRun(run_events(60, measured=True)).play()))
    text = look(page, "Evidence")
    assert "Timing blocks" in text and "400" in text and "torch.compile" in text
    assert page.locator(".kw-spread-box").count() >= 3


# ---- why, in pictures


def test_the_roofline_has_the_variant_its_parent_the_baseline_and_the_floor(shown, everything):
    child = next(row for row in everything["snapshot"]["upserts"] if row["parents"] and row["verdict"] == "right")
    look(shown, "Why", child["id"])
    shown.wait_for_selector(".kw-roof-parent")
    for kind in ("own", "parent", "base", "floor"):
        assert shown.locator(f".kw-roof-mark.kw-roof-{kind}").count() == 1, kind
    assert f"{child['id']} does" in shown.locator(".kw-roof").get_attribute("aria-label")
    above = shown.evaluate("""() => { const y = (kind) => document.querySelector(`.kw-roof-${kind}`).getBoundingClientRect().y;
        return y('floor') <= y('own') && y('own') < y('base'); }""")
    assert above  # faster stands higher


def test_what_a_change_did_is_said_in_words(shown, everything):
    child = next(row for row in everything["snapshot"]["upserts"] if row["parents"] and row["verdict"] == "right")
    look(shown, "Why", child["id"])
    shown.wait_for_selector(".kw-change")
    time = shown.locator("tr", has_text="time").filter(has=shown.locator(".kw-change")).first.inner_text()
    assert re.search(r"(better|worse|the same)", time), time
    assert re.search(r"lines? added, \d+ removed|The source is the same", shown.locator(".kw-tabpanel").inner_text())


# ---- inspections


def test_source_and_stage_light_each_other_up(shown):
    look(shown, "Compiler")
    left, right = shown.locator(".kw-side").nth(0), shown.locator(".kw-side").nth(1)
    line = left.locator(".cm-line", has_text="row = tl.program_id(0)")
    line.click()
    assert right.locator(".kw-linked-line").count() == 3  # TTGIR has three lines for each
    assert re.search(r"Line \d+ becomes 3 lines of TTGIR", shown.locator(".kw-linked-words").inner_text())
    right.locator(".kw-linked-line").first.click()
    assert left.locator(".kw-linked-line").inner_text().strip().startswith("row = tl.program_id")
    left.locator(".cm-content").focus()
    shown.keyboard.press("ArrowDown")
    assert left.locator(".kw-linked-line").count() == 1


def test_stages_targets_and_what_is_missing(shown):
    text = look(shown, "Compiler")
    assert "96 registers" in text and "no spills" in text and "occupancy 63 %, by registers" in text
    shown.get_by_role("radio", name="TTGIR").focus()
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("document.activeElement.textContent") == "LLIR"
    shown.get_by_role("radio", name="SASS").click()
    assert "install the package nvidia-cuda-nvcc" in shown.locator(".kw-tabpanel").inner_text()
    shown.get_by_label("Compile for").select_option("cuda:80")
    assert sent(shown, "inspect")[-1]["options"] == {"target": "cuda:80"}


def test_two_variants_at_one_stage(shown):
    look(shown, "Compiler")
    select = shown.get_by_label("Compare this stage with that of another variant")
    select.select_option(index=1)
    shown.wait_for_selector(".kw-diff-box .cm-editor")
    assert "equal at this stage" in shown.locator(".kw-tabpanel").inner_text()
    assert len(sent(shown, "inspect")) == 2


def test_an_inspection_can_be_cancelled_and_asked_for_again(page, everything):
    open_board(page, {**everything, "reports": {}})
    page.get_by_role("tab", name="Trace").click()
    page.wait_for_selector(".kw-spinner")
    assert "This takes a few seconds" in page.locator(".kw-tabpanel").inner_text()
    page.locator(".kw-wait").get_by_role("button", name="Cancel").click()
    assert sent(page, "leave")[0]["request"] == sent(page, "inspect")[0]["request"]
    assert "You cancelled it." in page.locator(".kw-tabpanel").inner_text()
    page.get_by_role("button", name="Look again").click()
    again = sent(page, "inspect")
    assert len(again) == 2
    failed = {
        "type": "inspection",
        "request": again[1]["request"],
        "stage": "failed",
        "message": "there is no compiler here",
        "report": None,
    }
    deliver(page, failed)
    assert "there is no compiler here" in page.locator(".kw-tabpanel").inner_text()
    deliver(page, {**failed, "request": "somebody else's", "message": "not for you"})
    assert "not for you" not in page.locator(".kw-tabpanel").inner_text()


def test_inspections_are_asked_for_once(shown):
    for tab in ("Memory", "Trace", "Memory", "Trace"):
        look(shown, tab)
    assert [message["what"] for message in sent(shown, "inspect")] == ["memory", "trace"]


HASH = """(index) => { const canvas = document.querySelectorAll('.kw-heat')[index];
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return [data.reduce((sum, value, at) => (sum * 31 + value * (at % 97)) % 1000003, 7), new Set(data).size]; }"""


def test_the_memory_maps_follow_the_program(shown):
    text = look(shown, "Memory")
    assert "all 17 programs counted" in text and "x 33×130 bfloat16" in text
    before, colours = shown.evaluate(HASH, 0)
    assert colours > 3
    shown.get_by_label("Program", exact=True).focus()
    shown.keyboard.press("ArrowRight")
    assert "program (1, 0, 0), number 1" in shown.locator(".kw-tabpanel").inner_text()
    assert shown.evaluate(HASH, 0)[0] != before
    assert "touches 66 of 1089 cells" in shown.locator(".kw-heat").first.get_attribute("aria-label")
    shown.get_by_role("button", name="Play").click()
    shown.wait_for_function("document.querySelector('.kw-slider').value > 1")
    shown.get_by_role("button", name="Pause", exact=True).last.click()


def test_memory_instructions_in_words(shown):
    text = look(shown, "Memory")
    assert "scattered: 8× the sectors that would do; each byte asked for 17×; many lanes idle!" in text
    assert "side by side" in text
    shown.get_by_label("Which shapes").select_option("real")
    assert sent(shown, "inspect")[-1]["options"] == {"shapes": "real"}


def test_a_timeline_by_keyboard(shown):
    text = look(shown, "Trace")
    assert "their lengths can't be compared" in text and "modelled" in text and "Hardware counters need a GPU" in text
    canvas = shown.locator(".kw-timeline").first
    canvas.focus()
    shown.keyboard.press("ArrowRight")
    words = shown.locator(".kw-timeline-words").first
    assert (
        words.inner_text()
        == "rmsnorm_partial (its own): 31.0 µs, from 0 µs; memory 29.4 µs, L2 17.0 µs, compute 4.20 µs, launch 2.00 µs, DRAM bytes 134 MB"
    )
    shown.keyboard.press("ArrowRight")
    assert words.inner_text().startswith("rmsnorm_apply")
    shown.keyboard.press("+")
    shown.keyboard.press("0")
    assert shown.evaluate("document.activeElement.className").startswith("kw-timeline")


def answer(page, report, place=-1, **more):
    deliver(page, {
        "type": "inspection", "request": sent(page, "inspect")[place]["request"], "stage": "ready", "message": "", "report": report, **more,
    })  # fmt: skip


def counter_cells(page):
    lines = page.get_by_role("group", name="Hardware counters").locator("tr")
    return [[cell.strip() for cell in line.locator("th, td").all_inner_texts()] for line in lines.all()]


def test_hardware_counters_are_read_when_asked_and_stay(page, everything):
    open_board(page, {**everything, "reports": {}})
    page.get_by_role("tab", name="Trace").click()
    answer(page, encode(measured_trace()))
    assert len(sent(page, "inspect")) == 1, "the plain trace does not wait for them"
    page.get_by_role("button", name="Read hardware counters").click()
    asked = sent(page, "inspect")
    assert asked[1]["what"] == "trace" and asked[1]["options"] == {"counters": "true"}
    assert "Nsight Compute" in page.locator(".kw-wait").inner_text()
    refused = "the driver keeps hardware counters for root: load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0"
    answer(page, None, stage="failed", message=refused)
    text = page.locator(".kw-tabpanel").inner_text()
    assert refused in text and "rmsnorm_partial" in text, "the timeline stays"
    page.get_by_role("button", name="Look again").click()
    answer(page, encode(counters("rmsnorm_partial", "rmsnorm_apply_with_a_name_that_is_very_long_indeed")))
    table, cells = page.get_by_role("group", name="Hardware counters"), counter_cells(page)
    assert cells[0] == ["counter", "rmsnorm_partial", "rmsnorm_apply_with_…g_indeed", "whole call"]
    found = {row[0]: row[1:] for row in cells[1:]}
    assert found["DRAM read"] == ["67.4 MB", "33.7 MB", "101 MB"] and found["DRAM over the least"] == ["", "", "1.50×"]
    assert found["L2 hits"] == ["60 %", "–", ""] and found["registers"] == ["32 a thread", "40 a thread", ""]
    assert list(found).index("DRAM over the least") == list(found).index("DRAM written") + 1
    row = table.get_by_role("row", name="DRAM over the least")
    assert "134.2 MB of the inputs and outputs" in row.get_attribute("title")
    assert "card's own clocks" in page.locator(".kw-tabpanel").inner_text()
    look(page, "Why")
    page.get_by_role("tab", name="Trace").click()
    page.get_by_role("group", name="Hardware counters").wait_for()
    assert [one["options"] for one in sent(page, "inspect") if one["what"] == "trace"] == [{}, {"counters": "true"}, {"counters": "true"}]


def test_one_kernels_counters_are_one_column(page, everything):
    open_board(page, {**everything, "reports": {}})
    page.get_by_role("tab", name="Trace").click()
    answer(page, encode(measured_trace()))
    page.get_by_role("button", name="Read hardware counters").click()
    answer(page, encode(counters("rmsnorm_kernel")))
    cells = counter_cells(page)
    assert cells[0] == ["counter", "rmsnorm_kernel"] and cells[5] == ["DRAM over the least", "1.00×"]
    assert all(len(row) == 2 for row in cells) and len({row[0] for row in cells}) == len(cells)


def test_without_a_gpu_there_is_no_button_for_counters(shown):
    text = look(shown, "Trace")
    assert "Hardware counters need a GPU" in text
    assert shown.get_by_role("button", name="Read hardware counters").count() == 0


def test_a_trace_can_be_saved(page, everything):
    changed = json.loads(json.dumps(everything))
    changed["reports"]["trace"]["file"] = "/somewhere/trace.json.gz"
    open_board(page, changed)
    look(page, "Trace")
    page.evaluate("""() => { window.asked = (message) => message.type === 'save' && window.deliver(
        {type: 'file', request: message.request, name: 'trace.json.gz', error: ''}, [new DataView(new Uint8Array([1, 2, 3]).buffer)]); }""")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save Chrome trace").click()
    assert download.value.suggested_filename == "trace.json.gz"
    assert download.value.path().read_bytes() == b"\x01\x02\x03"


@pytest.mark.parametrize("tab", ["Why", "Compiler", "Memory", "Trace", "Prompt", "Evidence"])
def test_a_variant_that_is_being_judged_says_what_is_missing(shown, everything, tab):
    waiting = next(row["id"] for row in everything["snapshot"]["upserts"] if row["verdict"] == "proposed")
    text = look(shown, tab, waiting)
    assert "judged" in text or "asked" in text

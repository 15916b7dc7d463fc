"""The output that stays when kernel and widgets are gone."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from conftest import SOFTMAX, candidate_of, evaluation_of, stored_run

from workbench import events, evolution
from workbench.notebook import views
from workbench.notebook.static import LiveDisplay, Summary, mimebundle, render
from workbench.store import MemoryStore

ALLOWED = {"section", "h4", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "p", "code"}

PARTS = (
    "softmax (x 64×100 float32) for cuda:90",
    "eager: 40.0 µs modelled",
    "no time: no GPU",
    "Floor: 9.5 µs",
    "k1, right, 12.3 µs modelled",
    "interpreter (4×130)",
    "It moves the least bytes",
    "3 judged",
    "1 wrong",
    "1 does not build",
    "output 0 differs",
    "tl has no most",
    "ended: 3 evaluations done",
    'workbench.open("softmax-1")',
)


class Reader(HTMLParser):
    """Checks that tags close in order, and keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def run(store, softmax_task):
    return evolution.open_run(store, stored_run(store, softmax_task))


def test_html_is_semantic_and_has_neither_script_nor_style(run):
    html, _ = render(run)
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    assert reader.tags == ALLOWED
    assert reader.attributes == {"scope", "style"}
    assert set(re.findall(r'style="([^"]*)"', html)) == {"text-align:left", "text-align:right"}  # the sanitiser lets this through
    assert html.count('scope="col"') == 5
    assert html.count('scope="row"') == 3


def test_it_says_what_a_person_needs_and_escapes_the_rest(run):
    html, text = render(run)
    reader = Reader()
    reader.feed(html)
    for said in (reader.text, text):
        for part in PARTS:
            assert part in said, part
    assert "WARPS = 8" in reader.text
    assert "<b>base two" not in html
    assert "speedup" not in text and "×\n" not in text


def test_right_variants_come_first(run):
    assert [one.candidate for one in Summary.of(run.events(0)).ranked()] == ["k1", "k2", "k3"]


def test_a_run_without_events_is_no_blank(run):
    assert "no events" in mimebundle(Summary())["text/plain"]


def test_the_table_shows_the_first_dozen_and_counts_the_rest(store, softmax_task):
    from workbench.brief import Proposal

    name = stored_run(store, softmax_task, end=False)
    for number in range(4, 24):
        one = candidate_of(SOFTMAX, "softmax", f"k{number}")
        store.append(name, events.Proposed(Proposal(f"b{number}", one)))
        store.append(name, events.Evaluated(f"b{number}", evaluation_of(one)))
    html, text = render(evolution.open_run(store, name))
    assert html.count('scope="row"') == 12
    assert "23 judged in 23 evaluations" in text
    assert "the first 12 shown" in text


def test_the_live_display_is_refreshed_at_a_new_best_and_at_the_end_at_most_once_in_an_interval(store, softmax_task):
    run = evolution.open_run(store, stored_run(store, softmax_task, end=False))
    store.claim(run.id, run._recorder.owner)
    shown: list[str] = []
    live = LiveDisplay(run, lambda bundle: shown.append(bundle["text/plain"]), interval=0.3)
    assert "k1, right" in live.bundle()["text/plain"]
    live.flush()
    for time_us in (11.0, 10.0, 9.9):
        run.record(events.BestChanged("k1", "k1.1", time_us))
    assert len(shown) == 1
    deadline = time.monotonic() + 5
    while len(shown) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(shown) == 2
    run.record(events.Ended("done", "k1"))
    assert len(shown) == 3
    assert "ended: done" in shown[-1]
    live.close()
    run.record(events.Noted("later"))
    assert len(shown) == 3


def test_views_read_well_as_text_and_as_html(run):
    one = views.variant(run, "best")
    assert repr(one).startswith("k1.1: right, 12.3 µs modelled")
    assert "values: WARPS=8" in repr(one)
    assert "WARPS = 8" in repr(one)
    assert "<pre>" in one._repr_html_()
    wrong = repr(views.variant(run, "k2"))
    assert "witness: output 0 at (1, 2): got 0.5, expected 0.25 (input set normal)" in wrong
    changed = repr(views.diff(run, "k2"))
    assert changed.startswith("k1.1 → k2.1")
    assert re.search(r"^-.*tl\.exp\(", changed, re.MULTILINE)
    assert re.search(r"^\+.*tl\.exp2\(", changed, re.MULTILINE)
    assert repr(views.diff(run, "k1")).startswith("reference → k1.1")


def test_beside_a_board_the_record_is_folded_behind_its_outcome(run):
    bundle = LiveDisplay(run, lambda bundle: None).bundle()
    assert bundle["text/html"].startswith(
        "<details><summary>Record of softmax: best k1, right, 12.3 µs modelled; ended; 3 variants</summary>"
    )
    assert mimebundle(Summary.of(run.events(0)))["text/html"].startswith("<section>")

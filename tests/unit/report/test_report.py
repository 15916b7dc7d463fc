"""The report: complete, offline, readable by machines, and proof against text that wants to be markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from workbench import events
from workbench.brief import Brief, Budget, Proposal, Role
from workbench.candidate import (
    Baseline,
    Candidate,
    Diagnosis,
    Environment,
    Evaluation,
    Evidence,
    Resources,
    Timing,
    Verdict,
    Witness,
)
from workbench.cli import main
from workbench.evolution import open_run
from workbench.evolution.recorder import Recorder
from workbench.evolution.view import View
from workbench.notebook.report import render
from workbench.notebook.report_chart import Line, Point, chart
from workbench.notebook.report_code import changes, highlighted
from workbench.store import KeptCall, MemoryStore, open_default
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

EVIL = "</pre></title><script>alert('x')</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}"
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "nav", "h1", "h2", "h3", "p", "ul", "li", "strong",
    "span", "code", "pre", "details", "summary", "dl", "dt", "dd", "a", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure",
    "figcaption", "svg", "g", "line", "text", "path", "circle", "rect", "div", "br",
}  # fmt: skip


class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text += data


def happened(evil: str) -> list[events.Event]:
    """A run in which every text that somebody else wrote is `evil`."""
    task = Task(
        f"op {evil}", f"# {evil}\ndef double(x):\n    return x * 2\n", "double",
        (InputSpec("x", (64, 32), "float32", (32, 1), Values("normal")),), (OutputSpec((64, 32), "float32"),), Work(16384, 2048),
    )  # fmt: skip
    source = f'# {evil}\nTUNE = {{"BLOCK": [64, 128]}}\ndef double(x):\n    return x * 2  # {evil}\n'
    time = Timing(12.0, 12.0, 12.0, 12.0, 12.0, modelled=True)
    found: list[events.Event] = [
        events.RunStarted(task, Budget(), 0, ("experts", f"llm:{evil}"), cell_source=evil),
        events.Prepared(
            3.0, (Baseline("eager", time), Baseline("compile", None, evil)), f"no GPU: {evil}", Environment("3.11", evil), (evil,)
        ),
    ]
    verdicts = (Verdict.RIGHT, Verdict.WRONG, Verdict.DOES_NOT_BUILD, Verdict.REFUSED, Verdict.RIGHT)
    for number, verdict in enumerate(verdicts, 1):
        name = f"k{number}"
        brief = Brief(f"b{number}", name, "step", Role(evil, evil), task)
        found.append(events.Asked(brief))
        found.append(events.Proposed(Proposal(brief.id, Candidate(
            name, "triton", source + f"# {number}\n", "double", island=evil, proposer=f"llm:{evil}", plan=evil, brief=brief.id,
            cites=(evil,),
        ))))  # fmt: skip
        right = verdict is Verdict.RIGHT
        evaluation = Evaluation(
            f"{name}.0", name, task.id, verdict, evil, {"BLOCK": 64}, None if right else Witness(1, evil, 0, (1, 2), 1.0, 2.0, 0.1, evil),
            evil, input_sets=(evil,), matched=1.0 if right else 0.5, error_ratio=0.5,
            timing=Timing(20.0 - number, 1, 2, 1, 2, modelled=True) if right else None, labels=(evil,), log=evil,
            resources=(Resources(evil, (4,), registers=32, limited_by=evil),) if right else (),
        )  # fmt: skip
        found.append(events.Evaluated(brief.id, evaluation, Diagnosis(evaluation.id, "memory", evil, evil, (evil,), 2.0)))
        if right:
            found.append(events.BestChanged(name, evaluation.id, 20.0 - number))
    evidence = Evidence(task.id, "run", "k5", "a" * 64, "b" * 64, "c" * 64, found[-2].evaluation, {evil: evil}, evil)
    found += [
        events.AcceptedCandidate(evidence, f"x = '{evil}'", evil), events.Acted("hint", evil), events.Acted("ban", evil),
        events.Noted(evil, level="warning"), events.Spent(Budget(5, 3.0, 0.0, 10, 0.01)), events.Ended(evil, "k5"),
    ]  # fmt: skip
    return found


def stored(store, evil: str):
    recorder = Recorder(store, "double-1", View(), "me")
    assert recorder.add(*happened(evil)), recorder.trouble
    recorder.keep_call(
        KeptCall("key", "b1", "step", f"model {evil}", reply=evil, tokens_in=1200, tokens_out=345, money=0.0123, seconds=2.0)
    )
    return open_run(store, "double-1")


@pytest.fixture(scope="module")
def evil_page() -> tuple[str, Page]:
    text = render(stored(MemoryStore(), EVIL))
    return text, Page(text)


def test_no_text_becomes_markup(evil_page):
    text, page = evil_page
    assert set(page.tags) <= ALLOWED, set(page.tags) - ALLOWED
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script" not in text.lower()
    assert "<img" not in text.lower()
    assert text.count("<title") == 2 + 5, "its own, the chart's, and one for each judgement"


def test_hostile_text_is_shown_as_it_is_and_not_evaluated(evil_page):
    _, page = evil_page
    assert page.text.count("<script>alert('x')</script>") > 20
    assert "{{ 7*7 }}" in page.text


def test_it_needs_nothing_from_elsewhere(evil_page):
    text, page = evil_page
    links = [value for name, value in page.attributes if name in ("src", "href", "action", "data", "srcset", "poster")]
    assert links
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)
    assert "url(" not in text
    assert "@import" not in text
    assert any("default-src 'none'" in value for name, value in page.attributes if name == "content")


def test_everything_is_there():
    page = Page(render(stored(MemoryStore(), "plain words")))
    for text in (
        "op plain words", "15\u202fµs", "k5.0, modelled", "Times are modelled", "no speedup is claimed", "the best takes 5.00× as long",
        "BLOCK = 64", "+BLOCK = 64", "Witness: plain words, seed 1: output 0[1, 2] is 1, should be 2 within 0.1", "does not build",
        "1,200", "345", "0.0123\u202fUSD", "a" * 64, "Next: plain words", 'workbench.open("double-1")', "Warning: plain words",
    ):  # fmt: skip
        assert text in page.text, text
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("caption") == page.tags.count("table"), "each table says what it is"


def test_a_run_without_a_right_variant_says_so():
    store = MemoryStore()
    recorder = Recorder(store, "double-1", View(), "me")
    assert recorder.add(*happened("words")[:2])
    page = Page(render(open_run(store, "double-1")))
    assert "No variant is right yet" in page.text
    assert "Nothing was judged yet" in page.text


def test_the_command_writes_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_STORE", str(tmp_path / "store"))
    stored(open_default(tmp_path), "words")
    file = tmp_path / "run.html"
    assert main(["report", "last", "--html", str(file)]) == 0
    assert "op words" in Page(file.read_text(encoding="utf-8")).text
    capsys.readouterr()
    assert main(["report", "last", "--html", str(tmp_path / "no" / "run.html")]) == 2
    assert "give a file that can be written" in capsys.readouterr().err
    assert main(["report", "nothing-like-it", "--html", str(file)]) == 2


def test_the_chart_puts_faster_lower_and_labels_apart():
    points = [Point(n, f"k{n}", t, "right", "right", True) for n, t in enumerate((100.0, 50.0, 80.0, 10.0), 1)]
    found = chart([*points, Point(5, "k5", None, "failed", "crashed", False)], [Line("floor", 9.0), Line("eager", 9.5)])
    heights = [point["y"] for point in found["points"]]
    assert heights[0] < heights[2] < heights[1] < heights[3] < heights[4] == found["bottom"]
    assert found["path"].count("L") == 5, "two steps down, each across and down, and to the end"
    labels = sorted(level["label"] for level in found["levels"])
    assert labels[1] - labels[0] >= 15


def test_code_is_cut_into_pieces_that_add_up_to_it():
    source = 'def f(x):  # why\n    """Two\n    lines."""\n    return x + 1.5\n'
    lines = highlighted(source)
    assert "\n".join("".join(piece.text for piece in line) for line in lines) == source.rstrip("\n")
    kinds = {piece.text: piece.kind for line in lines for piece in line if piece.kind}
    assert kinds == {
        "def": "keyword",
        "# why": "comment",
        '"""Two': "string",
        '    lines."""': "string",
        "return": "keyword",
        "1.5": "number",
    }
    assert highlighted("def (")[0][0].text == "def ("
    assert [kind for kind, _ in changes("a\n", "b\n", "old", "new")] == ["place", "place", "place", "del", "add"]

from __future__ import annotations

import threading
import time
from dataclasses import replace

from workbench.board import history, rows
from workbench.board.feed import BURST, Feed


class Browser:
    """What the board's store does with messages: numbered deltas on top of a snapshot, a gap asks anew."""

    def __init__(self):
        self.seq, self.rows, self.points, self.lines, self.gaps, self.deltas = -1, {}, {}, [], 0, 0

    def __call__(self, message):
        if message["type"] == "delta":
            self.deltas += 1
            if message["seq"] != self.seq + 1:
                self.gaps += 1
                return
        self.seq = message["seq"]
        self.rows.update({row["id"]: row for row in message["upserts"]})
        self.points.update({point["evaluation"]: point for point in message["points"]})
        self.lines += message["log"]
        self.header = message["header"]


def test_deltas_add_up_to_what_the_run_shows(recorded):
    browser = Browser()
    feed = Feed(recorded, browser)
    feed.snapshot()
    for _ in range(200):
        recorded.play(1)
        feed.flush()
    feed.close()
    assert browser.gaps == 0
    assert browser.rows == {row["id"]: row for row in rows.rows(recorded)}
    judged = history.past(recorded)[2]
    assert [(point["evaluation"], point["verdict"]) for point in browser.points.values()] == [(one.id, one.verdict.value) for one in judged]
    assert browser.header == rows.header(recorded, history.past(recorded)[1])
    assert [line["seq"] for line in browser.lines] == sorted({line["seq"] for line in browser.lines})


def test_a_burst_becomes_few_messages(recorded):
    browser = Browser()
    feed = Feed(recorded, browser)
    feed.snapshot()
    began = time.monotonic()
    while time.monotonic() - began < 0.35:
        recorded.play(1)
        time.sleep(0.001)
    recorded.play()
    time.sleep(0.25)
    feed.close()
    seconds = time.monotonic() - began
    assert 2 <= browser.deltas <= seconds * 10 + BURST
    assert browser.rows == {row["id"]: row for row in rows.rows(recorded)}


def test_a_delta_carries_the_changed_rows_only(recorded):
    recorded.play()
    sent = []
    feed = Feed(recorded, sent.append)
    assert not feed.flush()
    feed.close()
    assert sent == []


def test_a_browser_that_comes_late_gets_everything_from_the_snapshot(recorded):
    recorded.play(120)
    browser = Browser()
    feed = Feed(recorded, lambda message: None)
    feed.flush()
    feed._send = browser
    feed.snapshot()
    recorded.play()
    feed.flush()
    feed.close()
    assert browser.gaps == 0
    assert browser.rows == {row["id"]: row for row in rows.rows(recorded)}
    assert [point["n"] for point in browser.points.values()] == list(range(1, len(browser.points) + 1))


def test_closing_ends_the_thread(recorded):
    feed = Feed(recorded, lambda message: None)
    feed.close()
    feed._thread.join(timeout=2)
    assert not feed._thread.is_alive()
    assert threading.active_count() < 50
    recorded.play(5)  # nobody listens any more


def test_a_run_that_is_only_modelled_says_so_everywhere(recorded):
    recorded.play()
    head = rows.header(recorded, history.past(recorded)[1])
    assert head["modelled"] and head["best"]["modelled"] and head["best"]["speedup"] is None
    assert all(row["speedup"] is None for row in rows.rows(recorded))
    points = [rows.point(1, evaluation) for evaluation in history.past(recorded)[2]]
    assert all(point["modelled"] for point in points if point["time_us"] is not None)


def test_a_degenerate_op_is_told_first(recorded):
    recorded.play()
    ready = replace(history.past(recorded)[1], degenerate="zeros", notes=("the reference is not deterministic",))
    notes = rows.header(recorded, ready)["notes"]
    assert "degenerate: zeros passes" in notes[0] and notes[1] == "the reference is not deterministic"


def test_why_there_is_no_variant_is_told_and_later_only_warnings(recorded):
    recorded.play(3)
    note = {"message": "no built-in expert fits this op", "level": "info"}
    early = {**recorded.header(), "notes": [note]}
    recorded.header = lambda: early
    assert rows.header(recorded, None)["notes"] == ["no built-in expert fits this op"]
    later = {**early, "candidates": 3, "notes": [note, {"message": "the disk is full", "level": "warning"}]}
    recorded.header = lambda: later
    assert rows.header(recorded, None)["notes"] == ["the disk is full"]


def test_what_an_opened_board_shows_is_what_a_live_one_showed(recorded):
    live = Browser()
    feed = Feed(recorded, live)
    feed.snapshot()
    for _ in range(40):
        recorded.play(5)
        feed.flush()
    recorded.play()
    feed.flush()
    feed.close()
    opened = Browser()
    late = Feed(recorded, opened)
    late.snapshot()
    late.close()
    assert (opened.rows, opened.points, opened.header) == (live.rows, live.points, live.header)


def test_a_failure_has_its_reason_and_no_time(recorded):
    recorded.play()
    failed = [row for row in rows.rows(recorded) if row["verdict"] in ("wrong", "crashed", "does_not_build", "refused")]
    assert failed
    assert all(row["reason"] and row["time_us"] is None for row in failed)


def test_where_nobody_looks_nothing_is_sent_and_who_comes_back_has_everything(recorded):
    browser, told = Browser(), []
    feed = Feed(recorded, browser, shown=lambda seq, header: told.append(header["evaluations"]))
    for view in ("v1", "v2"):
        feed.snapshot(view)
    recorded.play(40)
    feed.flush()
    feed.leave("v1")
    recorded.play(20)
    feed.flush()
    sent = browser.deltas
    feed.leave("v2")
    recorded.play(60)
    feed.flush()
    assert browser.deltas == sent
    assert told[-1] == recorded.header()["evaluations"]  # Python's own counters go on
    feed.snapshot("v3")
    recorded.play()
    feed.flush()
    feed.close()
    assert browser.gaps == 0 and browser.deltas > sent
    assert browser.rows == {row["id"]: row for row in rows.rows(recorded)}
    assert [point["n"] for point in browser.points.values()] == list(range(1, len(browser.points) + 1))

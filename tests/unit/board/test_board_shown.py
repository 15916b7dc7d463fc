"""What the boards of one run share."""

from __future__ import annotations

import pytest
from test_board_packing import unpacked

from workbench.board import rows, shown
from workbench.board.feed import Feed
from workbench.board.shown import Shown
from workbench.board.words import SPOKEN, log_line
from workbench.evolution.entry import columns


def snapshot_of(run):
    sent = []
    feed = Feed(run, sent.append)
    feed.snapshot()
    feed.close()
    return sent[0]


def packed_of(run):
    """What a board that opens now gets, unpacked."""
    sent = []
    feed = Feed(run, lambda message: None, packed=lambda *message: sent.append(message))
    feed.snapshot("v")
    feed.close()
    [(message, buffers)] = sent
    return {**message, "type": "snapshot", **{name: unpacked(message[name], buffers) for name in ("upserts", "points")}}


@pytest.fixture(params=["by field", "by row"])
def run(recorded, request):
    """A run that gives its rows by field, as an Evolution does, and one that has rows only."""
    if request.param == "by field":
        recorded.columns = lambda names: columns(recorded._view.cells(0, 1 << 20), names)
        recorded.told = lambda: (recorded._view.started, recorded._view.prepared, tuple(recorded._view.judged))
    return recorded


def test_a_run_is_packed_once_until_it_goes_on(run):
    run.play(60)
    kept = Shown.of(run)
    first = kept.packed(run)
    assert kept.packed(run) is first and Shown.of(run) is kept
    for _ in range(60):  # whatever a delta tells the browsers, those that come later get too
        run.play(1)
        now = kept.packed(run)
        assert now is not first
        assert unpacked(now[0]["upserts"], now[1]) == rows.rows(run)
        first = now


def test_a_packed_snapshot_says_what_a_plain_one_says(run):
    for count in (0, 3, 5, 60, 40, None):
        run.play(count)
        assert packed_of(run) == snapshot_of(run)


def test_a_run_that_was_made_ready_is_shown_as_any_other_also_when_it_goes_on_meanwhile(run):
    run.play(40)
    shown.make_ready(run)
    assert packed_of(run) == snapshot_of(run)
    run.play(30)
    assert packed_of(run) == snapshot_of(run)
    run.play()
    assert packed_of(run) == snapshot_of(run)


def test_rows_by_field_are_the_rows(run):
    for _ in range(50):
        run.play(2)
        found = rows.columns(run)
        assert [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)] == rows.rows(run)
        assert rows.rows(run) == [rows._row(summary) for summary in run.rows()]


def test_a_run_that_went_on_without_a_board_has_all_its_points(run):
    run.play(40)
    early = snapshot_of(run)["points"]
    run.play()  # nobody listens
    late = snapshot_of(run)["points"]
    judged = [one.event.evaluation.id for one in run.events() if one.type == "Evaluated"]
    assert [point["evaluation"] for point in late] == judged and len(late) > len(early)
    assert [point["n"] for point in late] == list(range(1, len(late) + 1)) and late[: len(early)] == early


def test_two_boards_and_what_happens_between_their_openings(run):
    """Both end up with what the run shows, however the events fall between snapshots and deltas."""
    browsers, feeds = [], []
    run.play(20)
    for _ in range(2):
        told = []
        browsers.append(told)
        feeds.append(Feed(run, told.append, packed=lambda message, buffers, told=told: told.append((message, buffers))))
        run.play(7)
        feeds[-1].snapshot("v")
        run.play(9)
    run.play()
    for feed in feeds:
        feed.flush()
        feed.close()
    for told in browsers:
        first = next(at for at, message in enumerate(told) if isinstance(message, tuple))
        message, buffers = told[first]
        known = {row["id"]: row for row in unpacked(message["upserts"], buffers)}
        points = {point["evaluation"]: point for point in unpacked(message["points"], buffers)}
        for delta in told[first + 1 :]:
            known |= {row["id"]: row for row in delta["upserts"]}
            points |= {point["evaluation"]: point for point in delta["points"]}
        assert list(known.values()) == rows.rows(run)
        assert list(points.values()) == snapshot_of(run)["points"]


def test_every_event_that_has_a_line_is_read_for_the_log(recorded):
    recorded.play()
    assert {one.type for one in recorded.events() if log_line(one) is not None} <= set(SPOKEN)
    assert {one.type for one in recorded.events()} - set(SPOKEN) == {"Asked", "Spent"}


@pytest.mark.parametrize("kept", [1000, 20])
def test_the_log_is_the_same_whenever_a_board_is_opened(recorded, monkeypatch, kept):
    monkeypatch.setattr(shown, "LOG_LINES", kept)
    recorded.play(70)
    early = Feed(recorded, lambda message: None)
    for _ in range(5):
        recorded.play(10)
        snapshot_of(recorded)
        early.flush()
    recorded.play()
    early.flush()
    sent = []
    early._send = sent.append
    early.snapshot()
    early.close()
    lines = [line["seq"] for line in sent[0]["log"]]
    assert lines == sorted(set(lines))
    ours = [one.seq for one in recorded.events() if log_line(one) is not None]
    assert lines[-10:] == ours[-10:]
    if kept == 1000:
        assert lines == ours
        assert sent[0]["log"] == snapshot_of(recorded)["log"]

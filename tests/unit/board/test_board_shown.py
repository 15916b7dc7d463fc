"""What the boards of one run share."""

from __future__ import annotations

import pytest

from workbench.board import shown
from workbench.board.feed import Feed
from workbench.board.packing import pack_snapshot
from workbench.board.shown import Shown
from workbench.board.words import SPOKEN, log_line


def snapshot_of(run):
    sent = []
    feed = Feed(run, sent.append)
    feed.snapshot()
    feed.close()
    return sent[0]


def test_a_run_is_packed_once_until_it_goes_on(recorded):
    recorded.play(60)
    kept = Shown.of(recorded)
    first = kept.packed(recorded)
    assert kept.packed(recorded) is first and Shown.of(recorded) is kept
    for _ in range(6):  # whatever a delta tells the browsers, those that come later get too
        recorded.play(5)
        kept.points(one.event.evaluation for one in recorded.events() if one.type == "Evaluated")
        packed, buffers = pack_snapshot(snapshot_of(recorded))
        assert kept.packed(recorded) == ({name: packed[name] for name in ("upserts", "points")}, buffers)


def test_a_packed_snapshot_says_what_a_plain_one_says(recorded):
    recorded.play()
    sent = []
    feed = Feed(recorded, lambda message: None, packed=lambda *message: sent.append(message))
    feed.snapshot("v")
    feed.close()
    assert sent == [pack_snapshot(snapshot_of(recorded))]


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

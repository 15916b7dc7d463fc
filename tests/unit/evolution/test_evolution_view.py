"""Rows of the view, by row and by field."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

from workbench.bench.sample_run import run_events
from workbench.evolution.entry import OFTEN, columns
from workbench.evolution.start import load_view
from workbench.evolution.view import View
from workbench.store import Store


def test_columns_are_the_rows_by_field_whatever_has_happened():
    view = View()
    for stamped in run_events(60, measured=True, ended=True):
        view.fold(stamped)
        rows = view.rows()
        found = columns([*view.cells(0, 7), *view.cells(7, 100)], OFTEN)
        assert all(found[name] == [row[name] for row in rows] for name in OFTEN)
    assert len(rows) == 60 and set(columns(view.cells(0, 9), ("id", "time_us"))) == {"id", "time_us"} and not view.cells(60, 9)


def test_one_row_is_the_best_and_says_so_anew_when_it_changes():
    view, changes = View(), []
    for stamped in run_events(300, ended=True):
        before = view.seq
        view.fold(stamped)
        best = [row["id"] for row in view.rows() if row["best"]]
        assert best == ([view.best.candidate] if view.best else [])
        if stamped.type == "BestChanged":
            changes.append({row["id"] for row in view.rows(before)})
            assert stamped.event.candidate in changes[-1]
    assert len(changes) > 3 and any(len(changed) == 2 for changed in changes)  # the new one, and the one that it took over from


@pytest.mark.parametrize("page", [1, 7, 5000])
def test_a_stored_run_is_seen_as_it_was_alive_however_it_is_paged(tmp_path, monkeypatch, page):
    monkeypatch.setattr(sys.modules["workbench.evolution.start"], "PAGE", page)
    alive = View()
    with closing(Store(tmp_path)) as store:
        for stamped in store.extend("r1", [one.event for one in run_events(40, measured=True, ended=True)]):
            alive.fold(stamped)
        seen = load_view(store, "r1")
    assert seen.rows() == alive.rows() and seen.header() == alive.header() and seen.judged == alive.judged
    assert seen.asked_at == alive.asked_at
    assert all(seen.candidate(name) == alive.candidate(name) for name in alive.names())

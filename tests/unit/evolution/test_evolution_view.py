"""Rows of the view, by row and by field."""

from __future__ import annotations

from workbench.bench.sample_run import run_events
from workbench.evolution.view import View


def test_columns_are_the_rows_by_field_whatever_has_happened():
    view = View()
    for stamped in run_events(60, measured=True, ended=True):
        view.fold(stamped)
        rows = view.rows()
        columns = view.columns(rows[0]) if rows else view.columns(("id",))
        assert all(columns[name] == [row[name] for row in rows] for name in columns)
    assert len(rows) == 60 and len(columns) > 30


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

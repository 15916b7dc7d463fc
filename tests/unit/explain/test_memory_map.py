"""Coalescing, cells and counts, on addresses whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.explain import memory_map
from workbench.explain.memory_map import Counts, Grid, coalesce, runs


def addresses(*offsets_by_axis: np.ndarray, start: int = 1 << 20) -> np.ndarray:
    total = np.uint64(start)
    return total + sum(np.ix_(*offsets_by_axis)).astype(np.uint64)


def test_contiguous_floats_take_four_sectors_a_request():
    found = coalesce(addresses(np.arange(128) * 4), None, 4)
    assert (found.requests, found.sectors, found.ideal) == (4, 16, 16)


def test_every_second_float_takes_eight_sectors_where_four_would_do():
    found = coalesce(addresses(np.arange(64) * 8), None, 4)
    assert (found.requests, found.sectors, found.ideal) == (2, 16, 8)


def test_a_large_stride_takes_a_sector_for_each_lane():
    found = coalesce(addresses(np.arange(32) * 4096), None, 4)
    assert (found.requests, found.sectors, found.ideal) == (1, 32, 4)


def test_lanes_lie_along_the_axis_where_addresses_are_closest_whichever_it_is():
    rows, columns = np.arange(32) * 4096, np.arange(32) * 4
    along, across = coalesce(addresses(rows, columns), None, 4), coalesce(addresses(columns, rows), None, 4)
    assert along == across
    assert along.sectors == along.ideal == 4 * 32


def test_one_address_for_all_lanes_is_one_sector():
    found = coalesce(np.full(32, 1 << 20, np.uint64), None, 4)
    assert (found.requests, found.sectors, found.ideal) == (1, 1, 1)


def test_a_misaligned_row_takes_one_sector_more():
    assert coalesce(addresses(np.arange(32) * 4, start=(1 << 20) + 8), None, 4).sectors == 5


def test_masked_lanes_ask_for_nothing():
    mask = np.arange(64) < 8
    found = coalesce(addresses(np.arange(64) * 4), mask, 4)
    assert (found.requests, found.sectors, found.lanes, found.active) == (1, 1, 64, 8)
    assert coalesce(addresses(np.arange(64) * 4), np.zeros(64, bool), 4).requests == 0


def test_half_precision_fills_two_sectors():
    assert coalesce(addresses(np.arange(32) * 2), None, 2).sectors == 2


def test_cells_of_a_transposed_view_are_in_its_own_order():
    grid = Grid((3, 4), (1, 3), most=128)  # element (row, column) lies at row + 3 * column
    assert grid.cells(np.array([0, 1, 3])).tolist() == [0, 4, 1]


def test_gaps_between_rows_are_no_cell():
    grid = Grid((4, 8), (16, 1))
    assert grid.cells(np.array([7, 8, 15, 16])).tolist() == [7, -1, -1, 8]


def test_leading_dimensions_are_folded_and_an_expanded_one_counts_once():
    grid = Grid((2, 3, 4), (12, 4, 1))
    assert (grid.folded, grid.rows, grid.columns) == (2, 3, 4)
    assert grid.means(np.array([0]), np.array([2])) == ((1.0, 1), (0.0, 11))  # one of the two elements behind cell 0, twice
    assert Grid((5, 4), (0, 1)).rows == 1


def test_large_tensors_are_drawn_in_at_most_128_cells_a_side_with_a_short_last_one():
    grid = Grid((1000, 300), (300, 1))
    assert (grid.rows, grid.columns, grid.row_elements, grid.column_elements) == (125, 100, 8, 3)
    everything = np.arange(1000 * 300)
    assert grid.means(everything, np.ones(everything.size, int)) == ((1.0, 125 * 100),)
    odd = Grid((129,), (1,))
    assert odd.means(np.arange(129), np.ones(129, int)) == ((1.0, 65),)


@pytest.mark.parametrize("limit", [1 << 22, 10], ids=["dense", "sparse"])
def test_counts_are_the_same_dense_and_sparse(limit, monkeypatch):
    monkeypatch.setattr(memory_map, "_DENSE", limit)
    monkeypatch.setattr(memory_map, "_BUFFER", 5)
    counts = Counts(100)
    for keys in ([1, 1, 99], [5], [1, 100, -1], [5, 5, 5, 5, 5, 5, 5]):
        counts.add(np.array(keys))
    keys, found = counts.found()
    assert dict(zip(keys.tolist(), found.tolist(), strict=True)) == {1: 3, 5: 8, 99: 1}


def test_runs():
    assert runs(np.array([0.0, 0.0, 2.0])) == ((0.0, 2), (2.0, 1))

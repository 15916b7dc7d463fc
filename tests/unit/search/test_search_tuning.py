"""Tunable points: neighbours first, no point twice, a cap of its own, and only for what is worth it."""

from __future__ import annotations

import itertools
import random

import pytest
from search_world import TASK, describe, drive, propose, read

from workbench.brief import Budget
from workbench.events import BestChanged
from workbench.search import Search
from workbench.search.members import point_key
from workbench.search.tuning import neighbours, next_point

TUNE = "TUNE = {'BLOCK': [64, 128, 256, 512], 'WARPS': [4, 8, 2]}"


def make(**more) -> Search:
    return Search(TASK, **({"experts": ("a",), "describe": describe, "budget": Budget(evaluations=60)} | more))


def test_neighbours_are_one_value_away_in_sorted_order():
    near = list(neighbours({"BLOCK": (128, 64, 256), "MODE": ("a", "b")}, {"BLOCK": 128, "MODE": "a"}))
    assert near == [{"BLOCK": 64, "MODE": "a"}, {"BLOCK": 256, "MODE": "a"}, {"BLOCK": 128, "MODE": "b"}]


def test_every_point_comes_once_and_then_none():
    space, tried, rng = {"A": (1, 2, 3), "B": (True, False)}, set(), random.Random(0)
    while (point := next_point(space, {"A": 1, "B": True}, tried, rng)) is not None:
        assert point_key(point) not in tried
        tried.add(point_key(point))
    assert len(tried) == 6


def test_a_huge_space_is_sampled_at_once():
    space = {f"P{number}": tuple(range(10)) for number in range(12)}
    best = dict.fromkeys(space, 0)
    tried = {point_key(point) for point in neighbours(space, best)}
    assert next_point(space, best, tried, random.Random(0)) is not None


@pytest.mark.parametrize("cap", [0, 3, 8])
def test_points_of_one_candidate_stay_below_the_cap(cap):
    log = drive(make(budget=Budget(evaluations=80, tune=cap)), lambda brief: propose(brief, tune=TUNE))
    points: dict[str, list] = {}
    for brief, proposal, found, _ in log:
        if brief.kind == "tune":
            assert proposal.candidate == brief.parents[0].candidate
            assert brief.candidate == found.candidate == proposal.candidate.id
            points.setdefault(brief.candidate, [point_key({"BLOCK": 64, "WARPS": 4})]).append(point_key(brief.parameters))
    assert all(len(tried) == len(set(tried)) and len(tried) - 1 <= cap for tried in points.values())
    assert bool(points) == (cap > 0)


def test_tuning_finds_the_faster_point_and_takes_turns_with_structure():
    search = make()
    log = drive(search, lambda brief: propose(brief, tune=TUNE, gain=0), steps=40)
    tuned = [event for brief, *_, events in log if brief.kind == "tune" for event in events if isinstance(event, BestChanged)]
    assert tuned
    assert search.best.evaluation.parameters["BLOCK"] == 256
    assert search.spent.tune == sum(brief.kind == "tune" for brief, *_ in log)
    for island in search.islands:
        kinds = [brief.kind for brief, *_ in log if brief.island.name == island.name]
        assert not any(one == other == "tune" for one, other in itertools.pairwise(kinds))


def test_a_slow_candidate_is_not_tuned():
    def answer(brief):
        return propose(brief, tune=TUNE)

    log = drive(make(patience=1000), answer)
    best: dict[str, float] = {}
    for brief, _, found, _ in log:
        if brief.kind == "tune":
            base = 1000 / (1 + read(brief.parents[0].candidate.source)[0]) * 0.75
            assert base <= 1.25 * best[brief.island.name]
        if found.time_us is not None:
            best[brief.island.name] = min(found.time_us, best.get(brief.island.name, 1e9))


def test_an_unreadable_tune_means_no_tuning():
    log = drive(make(), lambda brief: propose(brief, tune="TUNE = make()"), steps=10)
    assert not any(brief.kind == "tune" for brief, *_ in log)

"""The benchmark of the search: its table is real and whole, its programmer is not rigged, and its command prints figures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from workbench.bench.landscape import BUGS, HABITS, POINTS, load, thinned
from workbench.bench.programmer import WORDS, Design, Judge, Programmer, Skill, read, write
from workbench.bench.search import ALL, ARMS, DEAF, Arm, figures, run_arm, run_one
from workbench.candidate import Candidate, Verdict
from workbench.cli import main
from workbench.knowledge.experience import Library
from workbench.search import SWITCHES

LANDS = load()
SOFTMAX = next(land for land in LANDS if land.op == "softmax_bf16")


@pytest.mark.parametrize("land", LANDS, ids=lambda land: land.op)
def test_the_table_has_a_verdict_for_every_design(land):
    judge = Judge(land)
    for place, space in enumerate(land.tunes):
        size = 1
        for values in space.values():
            size *= len(values)
        assert 1 <= size <= POINTS
        assert sum(row.recipe == place and not row.bug and not row.habit for row in land.rows) == size
    for bug in (row.bug for row in land.rows if row.bug):
        found, diagnosis = judge.evaluate(Candidate("k1", "triton", write(land, Design(0, (), bug)), "f"), {}, 1)
        assert found.verdict not in (Verdict.RIGHT, Verdict.NOT_JUDGED) and found.reason and diagnosis.directive
    plain = judge.evaluate(Candidate("k1", "triton", write(land, Design(0)), "f"), {}, 1)[0].time_us
    slow = judge.evaluate(Candidate("k1", "triton", write(land, Design(0, tuple(HABITS))), "f"), {}, 1)[0].time_us
    assert land.floor_us < judge.best_us <= plain < slow


def test_designs_are_texts_that_read_back():
    design = Design(3, ("copies its output",), "mask one short")
    assert read(write(SOFTMAX, design, 7)) == design
    assert set(BUGS) <= set(WORDS)


def test_spaces_are_thinned_from_the_end_and_keep_their_defaults():
    assert thinned({"A": (4, 8, 16), "B": (1, 2)}, 4) == {"A": (4, 8), "B": (1, 2)}
    assert thinned({"A": (4,), "B": (1,)}, 0) == {"A": (4,), "B": (1,)}


@pytest.mark.parametrize("name", ["diagnosis", "experience"])
def test_to_a_programmer_that_heeds_nothing_words_make_no_difference_at_all(name):
    on, off = (run_arm((SOFTMAX,), Arm("x", mechanisms, skills=DEAF), 2, 16) for mechanisms in (ALL, ALL.without(name)))
    assert on == off


def test_the_same_seed_gives_the_same_run_and_no_cap_is_passed():
    arm = Arm("x", ALL)
    one, two = (run_one(SOFTMAX, arm, 3, 14, Library.shipped()) for _ in range(2))
    assert one == two and one.evaluations == 14
    assert run_one(SOFTMAX, arm, 4, 14, Library.shipped()) != one


def test_a_mistake_is_mended_more_often_when_its_words_are_heeded():
    from workbench.brief import Brief, Parent, Role

    judge = Judge(SOFTMAX)
    broken = Candidate("k1", "triton", write(SOFTMAX, Design(0, (), "range from one")), "softmax")
    found, why = judge.evaluate(broken, {}, 1)

    def mended(heed):
        programmer = Programmer(SOFTMAX, {"one": Skill(heed=heed, slip=0.0)}, 1)
        briefs = (
            Brief(f"b{n}", "repair", f"k{n}", Role("r", "a"), SOFTMAX.task, (Parent(broken, found, why),), directive=why.directive)
            for n in range(2, 202)
        )
        return sum(not read(programmer.propose(brief).candidate.source).bug for brief in briefs) / 200

    assert 0.1 < mended(1.0) < 0.25 < mended(4.0) < mended(12.0)


def test_every_mechanism_has_an_arm():
    off = {name for arm in ARMS if arm.against for name in SWITCHES if not getattr(arm.mechanisms, name)}
    assert off >= set(SWITCHES) - {"floor", "bans"}  # those save or forbid, they find nothing
    assert all(arm.against in {other.name for other in ARMS} for arm in ARMS if arm.against)


def test_figures_are_paired_and_say_what_they_show():
    runs = run_arm((SOFTMAX,), Arm("x", ALL), 3, 12)
    same = figures(Arm("y", ALL, "x"), runs, runs, 12)
    assert same.change == 0 and same.change_interval == (0, 0) and same.says == "no difference seen"
    late = tuple(replace(one, arrived=None) for one in runs)
    early = tuple(replace(one, arrived=1) for one in runs)
    assert figures(Arm("y", ALL, "x"), late, early, 12).says == "slower"
    assert figures(Arm("y", ALL, "x"), early, late, 12).says == "faster"


def test_the_command_prints_a_table_or_figures_and_names_a_bad_op(capsys, monkeypatch):
    monkeypatch.setattr("workbench.bench.search.run", lambda *given: (figures(ARMS[0], run_arm((SOFTMAX,), ARMS[0], 1, 6), (), 6),))
    assert main(["bench", "search", "--seeds", "1", "--evaluations", "6"]) == 0
    assert "| all on" in capsys.readouterr().out
    assert main(["bench", "search", "--seeds", "1", "--evaluations", "6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arms"][0]["runs"] == 1
    monkeypatch.undo()
    assert main(["bench", "search", "--ops", "nosuch"]) == 2
    assert "no recorded verdicts of 'nosuch'" in capsys.readouterr().err

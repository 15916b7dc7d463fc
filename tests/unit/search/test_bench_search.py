"""The benchmark of the search: its table is real and whole, its programmer is not rigged, and its command prints figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from workbench.bench.landscape import BUGS, HABITS, POINTS, load, thinned
from workbench.bench.programmer import WORDS, Design, Judge, Programmer, Skill, read, write
from workbench.bench.rugged import CHOICES, DIRECTIVES, made
from workbench.bench.search import ALL, ARMS, CARDED, DEAF, OTHERS, PROGRAMMERS, SENSITIVE, Arm, figures, run_arm, run_one
from workbench.brief import Brief, Parent, Role
from workbench.candidate import Candidate, Verdict
from workbench.cli import main
from workbench.knowledge.experience import Library
from workbench.search import SWITCHES

LANDS = load()
SOFTMAX = next(land for land in LANDS if land.op == "softmax_bf16")
JUDGE = Judge(SOFTMAX)


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
    on, off = (run_arm((JUDGE,), Arm("x", mechanisms, skills=DEAF), 2, 16) for mechanisms in (CARDED, CARDED.without(name)))
    assert on == off


def test_the_same_seed_gives_the_same_run_and_no_cap_is_passed():
    arm = Arm("x", ALL)
    one, two = (run_one(JUDGE, arm, 3, 14, Library.shipped()) for _ in range(2))
    assert one == two and one.evaluations == 14
    assert run_one(JUDGE, arm, 4, 14, Library.shipped()) != one


@pytest.mark.parametrize(("bug", "clear"), [("range from one", True), ("result scaled", False)])
def test_a_mistake_is_mended_more_often_when_its_words_are_heeded(bug, clear):
    broken = Candidate("k1", "triton", write(SOFTMAX, Design(0, (), bug)), "softmax")
    found, why = JUDGE.evaluate(broken, {}, 1)

    def mended(heed, clear):
        programmer = Programmer(SOFTMAX, {"one": Skill(heed=heed, clear=clear, slip=0.0)}, 1)
        briefs = (
            Brief(f"b{n}", "repair", f"k{n}", Role("r", "a"), SOFTMAX.task, (Parent(broken, found, why),), directive=why.directive)
            for n in range(2, 202)
        )
        return sum(not read(programmer.propose(brief).candidate.source).bug for brief in briefs) / 200

    assert 0.1 < mended(1.0, 1.0) < 0.25
    assert (mended(1.0, 20.0) > 0.6) == clear  # a message that names line and cause
    assert (mended(12.0, 1.0) > 0.4) != clear  # one that names a pattern


def test_a_large_step_slips_more_often_than_a_small_one():
    programmer = Programmer(SOFTMAX, {"one": Skill()}, 1)
    far = max(range(len(SOFTMAX.recipes)), key=lambda place: programmer._risk(Design(0), Design(place), Skill()))
    assert (
        programmer._risk(Design(0), Design(0, ("copies its input",)), Skill()) == 0.25 < programmer._risk(Design(0), Design(far), Skill())
    )


@pytest.mark.parametrize("k", [0, 3])
def test_a_made_land_is_as_rugged_as_it_says_and_can_be_searched(k):
    land = made(SOFTMAX, k, 1)
    times = {tuple(land.recipes[row.recipe].values())[1:]: row.time_us for row in reversed(land.rows) if not row.habit and not row.bug}
    assert len(times) == 216 and min(times.values()) > land.floor_us

    def neighbours(design):
        for place, values in enumerate(CHOICES.values()):
            for value in values:
                if value != design[place]:
                    yield (*design[:place], value, *design[place + 1 :])

    valleys = [design for design, time in times.items() if all(times[other] > time for other in neighbours(design))]
    assert len(valleys) == 1 if k == 0 else len(valleys) > 3
    found = run_one(Judge(land), Arm("x", ALL), 1, 20, Library.shipped())
    assert found.evaluations == 20 and found.ratio >= 1.0


def test_the_words_of_a_made_lands_directives_name_their_choice_and_no_other():
    for choice, directive in DIRECTIVES.items():
        assert [name for name in CHOICES if re.search(WORDS[name], directive.lower())] == [choice]


def test_every_mechanism_has_an_arm():
    bases = {arm.name: arm.mechanisms for arm in ARMS}
    differ = {
        name for arm in ARMS if arm.against for name in SWITCHES if getattr(arm.mechanisms, name) != getattr(bases[arm.against], name)
    }
    assert {"islands", "crossover", "migration"} <= differ
    off = {name for arm in ARMS if arm.against for name in SWITCHES if not getattr(arm.mechanisms, name)}
    measured = off | {"cards", "experience", "islands"}  # off by default, or of no use without cards
    assert measured >= set(SWITCHES) - {"floor", "bans"}  # those save or forbid, they find nothing
    for arms in (ARMS, PROGRAMMERS):
        assert all(arm.against in {other.name for other in arms} for arm in arms if arm.against)
    assert len(PROGRAMMERS) == len(OTHERS) * (3 + len(SENSITIVE))


def test_figures_are_paired_and_say_what_they_show():
    runs = run_arm((JUDGE,), Arm("x", ALL), 3, 12)
    same = figures(Arm("y", ALL, "x"), runs, runs, 12)
    assert same.change == 0 and same.change_interval == (0, 0) and same.says == "no difference seen"
    late = tuple(replace(one, arrived=None, money=2.0, ratio=2.0) for one in runs)
    early = tuple(replace(one, arrived=1, money=1.0, ratio=1.0) for one in runs)
    assert figures(Arm("y", ALL, "x"), late, early, 12).says == "later, dearer, worse"
    assert figures(Arm("y", ALL, "x"), early, late, 12).says == "sooner, cheaper, better"


def test_the_command_prints_a_table_or_figures_and_names_a_bad_op(capsys, monkeypatch):
    monkeypatch.setattr("workbench.bench.search.run", lambda *given: (figures(ARMS[0], run_arm((JUDGE,), ARMS[0], 1, 6), (), 6),))
    assert main(["bench", "search", "--seeds", "1", "--evaluations", "6"]) == 0
    assert "| the defaults" in capsys.readouterr().out
    assert main(["bench", "search", "--seeds", "1", "--evaluations", "6", "--rugged", "--programmers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arms"][0]["runs"] == 1
    monkeypatch.undo()
    assert main(["bench", "search", "--ops", "nosuch"]) == 2
    assert "no recorded verdicts of 'nosuch'" in capsys.readouterr().err

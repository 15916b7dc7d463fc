"""Every mechanism leaves its trace in what is asked and in the events, and leaves none when it is turned off."""

from __future__ import annotations

import itertools

import pytest
from search_world import TASK, describe, drive, propose, source_of

from workbench.brief import Budget, Proposal
from workbench.candidate import Candidate
from workbench.errors import MisuseError
from workbench.events import Migrated, Noted
from workbench.records import decode, encode
from workbench.search import ROLES, SWITCHES, Mechanisms, Search
from workbench.search.mechanisms import ISLANDS_FROM
from workbench.search.odds import Odds

ALL_ON = Mechanisms(islands=True, cards=True, migration=True, diversity=True, tuner="near")
UNWEIGHED = ALL_ON.without("odds")
"""Repairs come first, whatever comes of them."""

TUNE = "TUNE = {'BLOCK': [64, 128, 256, 512]}"


def run(off: str = "", answer=None, **more):
    search = Search(TASK, **({
        "experts": ("a", "b"), "describe": describe, "budget": Budget(evaluations=80), "patience": 1000,
        "mechanisms": UNWEIGHED.without(*([off] if off else [])),
    } | more))  # fmt: skip
    return search, drive(search, answer or (lambda brief: propose(brief, tune=TUNE, bug=2 if int(brief.id[1:]) % 5 == 0 else 0)))


def one_is_fast(brief):
    """The first island finds a fast design at once; the others never get anywhere."""
    fast = brief.id == "b1"
    return propose(brief).__class__(brief.id, Candidate("?", "triton", source_of(50 if fast else 1) + f"#{brief.id}", "?"))


def nothing_gains(brief):
    return propose(brief).__class__(brief.id, Candidate("?", "triton", f"# design=3 bug=0\n# {brief.id}\n", "?"))


def kinds(log):
    return {brief.kind for brief, *_ in log}


TRACES = {
    "seeds": lambda off: any(brief.expert for brief, *_ in run(off)[1]),
    "islands": lambda off: len({brief.island.name for brief, *_ in run(off)[1]}) == 4,
    "repair": lambda off: "repair" in kinds(run(off)[1]),
    "diagnosis": lambda off: any(parent.diagnosis for brief, *_ in run(off)[1] for parent in brief.parents),
    "crossover": lambda off: "crossover" in kinds(run(off)[1]),
    "migration": lambda off: any(isinstance(event, Migrated) for *_, events in run(off, one_is_fast)[1] for event in events),
    "tuning": lambda off: "tune" in kinds(run(off)[1]),
    "plateau": lambda off: any(isinstance(event, Noted) for *_, events in run(off, nothing_gains, patience=8)[1] for event in events),
    "floor": lambda off: (run(off, floor_us=100.0)[0].finished or "").startswith("floor"),
}
"""What shows that a mechanism was at work, given which one is off."""


@pytest.mark.parametrize("name", TRACES)
def test_a_mechanism_is_seen_when_it_is_on_and_not_when_it_is_off(name):
    assert TRACES[name]("")
    assert not TRACES[name](name)


@pytest.mark.parametrize("name", TRACES)
def test_turning_one_off_leaves_the_others(name):
    for other in TRACES:
        if other != name and not (name == "islands" and other in ("migration", "crossover")):  # those need two islands
            assert TRACES[other](name), other


def test_the_others_are_tested_where_they_live():
    # Experience and bandit act in the evolution, see there; bans and diversity below and in their own files.
    assert set(SWITCHES) - set(TRACES) == {"experience", "cards", "bandit", "bans", "diversity", "odds"}


def test_without_diagnosis_the_aim_speaks_and_a_repair_has_the_judges_reason():
    _, log = run("diagnosis")
    assert {brief.directive == brief.island.aim for brief, *_ in log if brief.kind == "step"} == {True}
    repairs = [brief for brief, *_ in log if brief.kind == "repair"]
    assert repairs and all(brief.directive.endswith("the smallest change that mends it: a witness") for brief in repairs)


def test_diversity_lets_a_stranger_among_the_elites():
    def answer(brief):
        number = int(brief.id[1:])
        design = 90 if number == 2 else 91 + 3 * number  # the slowest, and the only one of its vector width
        return propose(brief).__class__(brief.id, Candidate("?", "triton", source_of(design), "?"))

    def elites(off):
        search, _ = run(off, answer, budget=Budget(evaluations=12), experts=(), roles=ROLES[:1])
        return {member.id for member in search.islands[0].elites()}

    def asked_of(off):
        _, log = run(off, answer, budget=Budget(evaluations=12), experts=(), roles=ROLES[:1])
        return {parent.candidate.id for brief, *_ in log[5:] for parent in brief.parents}

    assert "k2" in elites("") and "k2" not in elites("diversity")
    assert "k2" in asked_of("") and "k2" not in asked_of("diversity")  # what is asked for stands in the events


def test_all_off_is_one_candidate_after_the_other():
    off = Mechanisms().without(*SWITCHES)
    search = Search(TASK, experts=("a",), describe=describe, budget=Budget(evaluations=30), floor_us=100.0, mechanisms=off)
    log = drive(search, lambda brief: propose(brief, tune=TUNE, bug=int(int(brief.id[1:]) % 4 == 0)))
    assert kinds(log) == {"seed", "step"} and {brief.island.name for brief, *_ in log} == {"everything"}
    assert search.finished == "budget: 30 of 30 evaluations are used"
    assert not any(isinstance(event, Migrated | Noted) for *_, events in log for event in events)


def test_repairs_wait_where_fresh_candidates_are_right_more_often_and_go_first_again_when_they_are_not():
    odds = Odds()
    assert odds.favour_repair  # nothing is known yet
    for _ in range(12):
        odds.told("repair", right=False)
        odds.told("step", right=True)
    assert not odds.favour_repair
    for _ in range(60):
        odds.told("repair", right=True)
        odds.told("crossover", right=False)
    assert odds.favour_repair
    nearer, farther = Odds(), Odds()
    for _ in range(5):
        nearer.told("repair", right=False, nearer=True)
        farther.told("repair", right=False)
    assert nearer.favour_repair and not farther.favour_repair


def test_a_run_whose_repairs_never_help_turns_to_fresh_ones():
    def answer(brief):  # every third fresh one is wrong, and beyond repair
        bug = 9 if brief.kind == "repair" or int(brief.id[1:]) % 3 == 0 else 0
        return Proposal(brief.id, Candidate("?", "triton", source_of(3, "", bug) + f"#{brief.id}", "?"))

    logs = {off: run("", answer, mechanisms=ALL_ON.without(*filter(None, [off])))[1] for off in ("", "odds")}
    repairs = {off: sum(brief.kind == "repair" for brief, *_ in log) for off, log in logs.items()}
    assert 0 < repairs[""] < repairs["odds"] / 2
    said = {off: [event.message for *_, events in log for event in events if isinstance(event, Noted)] for off, log in logs.items()}
    assert said["odds"] == [] and said[""][0].startswith("repairs wait: of them ") and "of fresh candidates" in said[""][0]


def test_switches_are_named_stored_and_read_back():
    made = Mechanisms().without("islands", "crossover").resolved()
    assert decode(Mechanisms, encode(made)) == Mechanisms.of(encode(made)) == made
    assert Mechanisms.of({"islands": False, "telepathy": True}) == Mechanisms(islands=False, cards=True, migration=True, diversity=True)
    old = Mechanisms.of({})  # as in the runs of before these could be left open
    assert old.islands is True and old.cards and old.migration and old.diversity
    with pytest.raises(MisuseError, match="there is no mechanism 'telepathy': there is seeds, islands"):
        Mechanisms().without("telepathy")
    with pytest.raises(MisuseError, match="there is no mechanism 'telepathy'"):
        Mechanisms().having("telepathy")
    assert Mechanisms().having("islands") == Mechanisms(islands=True)


def test_islands_are_settled_by_the_budget_once_and_in_one_population_the_roles_take_turns():
    few, many, uncapped = (Search(TASK, budget=Budget(evaluations=cap)) for cap in (ISLANDS_FROM - 1, ISLANDS_FROM, None))
    assert [len(search.islands) for search in (few, many, uncapped)] == [1, 4, 4]
    assert few.mechanisms.islands is False and many.mechanisms.islands is True  # what a run keeps, whatever its budget becomes
    assert len(Search(TASK, budget=Budget(evaluations=9), mechanisms=many.mechanisms).islands) == 4
    search = Search(TASK, budget=Budget(evaluations=9), describe=describe)
    roles = [brief.island for brief, *_ in drive(search)]
    assert {role.name for role in roles} == {"everything"}
    assert [role.aim for role in roles[:8]] == [role.aim for role in ROLES] * 2


def test_a_run_ends_with_a_reason_whatever_is_on():
    for off in itertools.chain([()], itertools.combinations(TRACES, 2)):
        search = Search(
            TASK, experts=("a",), describe=describe, budget=Budget(evaluations=25), mechanisms=Mechanisms(tuner="near").without(*off)
        )
        assert len(drive(search, lambda brief: propose(brief, tune=TUNE, bug=int(int(brief.id[1:]) % 3 == 0)))) <= 25
        assert search.finished, off

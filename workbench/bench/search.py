"""What each mechanism of the search is worth: the search as it is, with a scripted stochastic programmer and real recorded verdicts.

One run is one op and one seed. An arm turns a mechanism off (or another on) and repeats the same ops and seeds, so that differences are
paired. What counts is how many evaluations it takes to come within 2 % of the fastest design in the op's table; a run that does not get
there counts as one more than its cap. Intervals are 95 % bootstrap intervals over runs, and over pairs of runs.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.bench.landscape import Land, load
from workbench.bench.programmer import Judge, Programmer, Skill
from workbench.brief import Budget
from workbench.errors import MisuseError
from workbench.knowledge.experience import Library
from workbench.records import digest
from workbench.search import Mechanisms, Search
from workbench.search.mechanisms import all_off

NEAR = 1.02
"""Within this factor of the fastest design of the table a run has arrived."""
CARDS = 4
RESAMPLES = 1000

ONE: Mapping[str, Skill] = {"one": Skill()}
DEAF: Mapping[str, Skill] = {"one": Skill(heed=1.0)}
KEEN: Mapping[str, Skill] = {"one": Skill(heed=12.0)}
CLUMSY: Mapping[str, Skill] = {"one": Skill(heed=12.0, slip=0.6)}
TWO: Mapping[str, Skill] = {"strong": Skill(heed=6.0, slip=0.1, price=0.04), "weak": Skill(heed=2.0, slip=0.4, price=0.004)}


@dataclass(frozen=True)
class Arm:
    """One way to search.

    Attributes:
        against: the arm that it is compared with; empty for one that others are compared with.
        experts: whether the built-in experts write seeds.
        shared: whether the experience goes from op to op, in an order that the seed draws; else each run begins with the shipped cards.
    """

    name: str
    mechanisms: Mechanisms
    against: str = ""
    skills: Mapping[str, Skill] = field(default_factory=lambda: ONE)
    experts: bool = False
    shared: bool = True


ALL = Mechanisms(tuner="tpe")
BASE = "all on, no experts' seeds"
DEAF_BASE = "a deaf programmer: all on"


def _arms() -> tuple[Arm, ...]:
    off = ("islands", "repair", "odds", "diagnosis", "crossover", "migration", "diversity", "plateau", "tuning")
    return (
        Arm(BASE, ALL),
        *(Arm(f"without {name}", ALL.without(name), BASE) for name in off),
        Arm("without experience", ALL.without("experience"), BASE),
        Arm("experience of this run alone", ALL, BASE, shared=False),
        Arm("tuner: near instead of tpe", replace(ALL, tuner="near"), BASE),
        Arm("tuner: random instead of tpe", replace(ALL, tuner="random"), BASE),
        Arm("all off", all_off(("bans", "floor", "plateau")), BASE),
        Arm("with experts' seeds", ALL, BASE, experts=True),
        Arm("a clumsy programmer: all on", ALL, skills=CLUMSY),
        Arm("a clumsy programmer: without repair", ALL.without("repair"), "a clumsy programmer: all on", CLUMSY),
        Arm("a clumsy programmer: repairs always first", ALL.without("odds"), "a clumsy programmer: all on", CLUMSY),
        Arm("a keen reader: all on", ALL, skills=KEEN),
        Arm("a keen reader: without diagnosis", ALL.without("diagnosis"), "a keen reader: all on", KEEN),
        Arm("a keen reader: without experience", ALL.without("experience"), "a keen reader: all on", KEEN),
        Arm(DEAF_BASE, ALL, skills=DEAF),
        Arm("a deaf programmer: without diagnosis", ALL.without("diagnosis"), DEAF_BASE, DEAF),
        Arm("a deaf programmer: without experience", ALL.without("experience"), DEAF_BASE, DEAF),
        Arm("two models: bandit", ALL, skills=TWO),
        Arm("two models: in turns", ALL.without("bandit"), "two models: bandit", TWO),
    )


ARMS: tuple[Arm, ...] = _arms()


@dataclass(frozen=True)
class Outcome:
    """One run. `arrived` is the evaluation that came within 2 % of the best, None if none did; `ratio` the final time over the best."""

    op: str
    seed: int
    arrived: int | None
    ratio: float | None
    evaluations: int
    money: float


@dataclass(frozen=True)
class Figures:
    """One arm's row. Intervals are pairs. `change` is the mean of paired differences in evaluations: above 0 the arm is slower."""

    arm: str
    against: str
    runs: int
    success: float
    median: float
    median_interval: tuple[float, float]
    mean: float
    ratio: float
    used: float
    money: float
    change: float | None = None
    change_interval: tuple[float, float] | None = None

    @property
    def says(self) -> str:
        """What the comparison says."""
        if self.change is None or self.change_interval is None:
            return ""
        low, high = self.change_interval
        return "slower" if low > 0 else "faster" if high < 0 else "no difference seen"


def run_one(land: Land, arm: Arm, seed: int, cap: int, library: Library) -> Outcome:
    """One search from start to end. It is driven by ask and tell, as any other would be."""
    judge = Judge(land)
    own = int(digest([land.op, seed], 8), 16) >> 1  # ops are drawn apart, or one seed's luck would be all ops'
    programmer = Programmer(land, arm.skills, own, learning=arm.mechanisms.bandit)
    experts = tuple(dict.fromkeys(str(recipe["expert"]) for recipe in land.recipes)) if arm.experts else ()
    search = Search(
        land.task, experts=experts, budget=Budget(evaluations=cap), seed=own, floor_us=land.floor_us, mechanisms=arm.mechanisms,
        describe=judge.describe,
    )  # fmt: skip
    arrived, number = None, 0
    while (brief := search.ask()) is not None:
        diagnosis = brief.parents[0].diagnosis if brief.parents else None
        if arm.mechanisms.experience and brief.kind != "tune":
            brief = replace(brief, cards=library.retrieve(land.task, diagnosis, brief.island, k=CARDS))
        proposal = search.receive(search.given(brief) or programmer.propose(brief))
        if proposal.candidate is None:
            search.tell(proposal)
            continue
        number += 1
        evaluation, why = judge.evaluate(proposal.candidate, brief.parameters, number)
        search.tell(proposal, evaluation, why)
        if brief.kind != "tune":
            programmer.observe(brief, proposal, evaluation)
            if arm.mechanisms.experience:
                library.learn(land.task, brief.parents, proposal.candidate, evaluation)
        if arrived is None and evaluation.time_us is not None and evaluation.time_us <= NEAR * judge.best_us:
            arrived = number
    best = search.best.evaluation.time_us if search.best else None
    return Outcome(land.op, seed, arrived, best and best / judge.best_us, number, search.spent.money or 0.0)


def run_arm(lands: Sequence[Land], arm: Arm, seeds: int, cap: int) -> tuple[Outcome, ...]:
    """All ops under all seeds. Within a seed the ops come in an order of its own and share what they learn."""
    outcomes = []
    for seed in range(seeds):
        library = Library.shipped()
        for land in random.Random(seed).sample(list(lands), len(lands)):
            outcomes.append(run_one(land, arm, seed, cap, library if arm.shared else Library.shipped()))
    return tuple(outcomes)


def figures(arm: Arm, outcomes: Sequence[Outcome], others: Sequence[Outcome], cap: int) -> Figures:
    """The row of an arm; `others` are the runs of the arm that it is compared with, empty for none."""
    costs = [_cost(one, cap) for one in outcomes]
    ratios = [one.ratio for one in outcomes if one.ratio]
    change = interval = None
    if others:
        before = {(one.op, one.seed): _cost(one, cap) for one in others}
        pairs = [_cost(one, cap) - before[one.op, one.seed] for one in outcomes]
        change, interval = statistics.fmean(pairs), _bootstrap(pairs, statistics.fmean)
    return Figures(
        arm.name, arm.against, len(outcomes), sum(one.arrived is not None for one in outcomes) / len(outcomes),
        statistics.median(costs), _bootstrap(costs, statistics.median), statistics.fmean(costs),
        math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.inf,
        statistics.fmean(one.evaluations for one in outcomes), statistics.fmean(one.money for one in outcomes), change, interval,
    )  # fmt: skip


def run(seeds: int = 10, evaluations: int = 40, ops: Iterable[str] = (), arms: Sequence[Arm] = ARMS) -> tuple[Figures, ...]:
    """All arms.

    Args:
        seeds: runs of each op; `evaluations`: the cap of one run.
        ops: names in the recorded table; all by default.

    Raises:
        MisuseError: an op that is not in the table.
    """
    lands = load()
    wanted = tuple(ops)
    known = {land.op for land in lands}
    for op in wanted:
        if op not in known:
            raise MisuseError(f"no recorded verdicts of {op!r}: choose among {', '.join(sorted(known))}")
    lands = tuple(land for land in lands if not wanted or land.op in wanted)
    done: dict[str, tuple[Outcome, ...]] = {}
    rows = []
    for arm in arms:
        done[arm.name] = run_arm(lands, arm, seeds, evaluations)
        rows.append(figures(arm, done[arm.name], done.get(arm.against, ()), evaluations))
        print(line(rows[-1]), file=sys.stderr, flush=True)
    return tuple(rows)


def main(seeds: int, evaluations: int, ops: Iterable[str], as_json: bool) -> int:
    """What ``bench search`` does."""
    rows = run(seeds, evaluations, ops)
    if as_json:
        found: list[dict[str, Any]] = [{**row.__dict__, "says": row.says} for row in rows]
        print(json.dumps({"seeds": seeds, "evaluations": evaluations, "near": NEAR, "arms": found}))
    else:
        print(markdown(rows, seeds, evaluations))
    return 0


HEAD = ("arm", "arrived", "evaluations to it (median)", "mean", "best found", "used", "USD", "against its own base", "says")


def markdown(rows: Sequence[Figures], seeds: int, cap: int) -> str:
    """The table for people."""
    count = rows[0].runs // seeds if rows else 0
    lines = [
        f"{count} ops × {seeds} seeds, at most {cap} evaluations each; arrived: within 2 % of the fastest design of the op's table.", "",
        "| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD), *(line(row) for row in rows), "",
        "Verdicts and times are recorded ones, modelled for cuda:90; the programmer is scripted. What it reads, how likely it is to heed",
        "it and how often it slips are assumptions (bench/programmer.py): the rows of a deaf programmer, who heeds nothing, show what is",
        "left of a mechanism that works through words alone.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def line(row: Figures) -> str:
    """One row of the table."""
    low, high = row.median_interval
    change = ""
    if row.change is not None and row.change_interval is not None:
        change = f"{row.change:+.1f} [{row.change_interval[0]:+.1f}, {row.change_interval[1]:+.1f}]"
    cells = [
        row.arm, f"{row.success:.0%}", f"{row.median:g} [{low:g}, {high:g}]", f"{row.mean:.1f}", f"{row.ratio:.3f}×", f"{row.used:.1f}",
        f"{row.money:.3f}", change, row.says,
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _cost(one: Outcome, cap: int) -> float:
    return float(one.arrived if one.arrived is not None else cap + 1)


def _bootstrap(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    rng = random.Random(0)
    found = sorted(statistic(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES) - 1]

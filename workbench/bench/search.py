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

from workbench.bench.landscape import load
from workbench.bench.programmer import Judge, Programmer, Skill
from workbench.bench.rugged import lands as made_lands
from workbench.brief import Budget
from workbench.errors import MisuseError
from workbench.knowledge.experience import Library
from workbench.records import digest
from workbench.search import Mechanisms, Search
from workbench.search.mechanisms import all_off

NEAR = 1.02
"""Within this factor of the fastest design of the table a run has arrived."""
NOTHING = 4.0
"""A run without a right candidate counts as so many times the best."""
CARDS = 4
RESAMPLES = 1000

ONE: Mapping[str, Skill] = {"one": Skill()}
DEAF: Mapping[str, Skill] = {"one": Skill(heed=1.0, clear=1.0)}
TWO: Mapping[str, Skill] = {"strong": Skill(heed=6.0, slip=0.1, price=0.04), "weak": Skill(heed=2.0, slip=0.4, price=0.004)}
OTHERS: Mapping[str, Mapping[str, Skill]] = {
    "deaf": DEAF,
    "keen reader": {"one": Skill(heed=12.0)},
    "careful": {"one": Skill(slip=0.1)},
    "clumsy": {"one": Skill(slip=0.5)},
    "poor at repairs": {"one": Skill(clear=4.0, heed=2.0)},
    "good at repairs": {"one": Skill(clear=60.0, heed=12.0, slip=0.5)},
}
"""Programmers under whom the mechanisms are measured again, so that it shows what rests on an assumption."""
SENSITIVE = ("repair", "odds", "diagnosis")


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


ALL = Mechanisms(islands=False, tuner="tpe")
"""The defaults, as they are under 200 evaluations."""
CARDED = replace(ALL, cards=True)
ISLANDS = replace(ALL, islands=True)
BASE = "the defaults, no experts' seeds"
ISLES, WITH_CARDS = "with islands", "with cards"


def _arms() -> tuple[Arm, ...]:
    off = ("repair", "odds", "diagnosis", "plateau", "tuning")
    return (
        Arm(BASE, ALL),
        *(Arm(f"without {name}", ALL.without(name), BASE) for name in off),
        Arm("with diversity", ALL.having("diversity"), BASE),
        Arm(WITH_CARDS, CARDED, BASE),
        Arm("with cards of this run and the shipped ones", CARDED, BASE, shared=False),
        Arm(ISLES, ISLANDS, BASE),
        Arm("tuner: near instead of tpe", replace(ALL, tuner="near"), BASE),
        Arm("tuner: random instead of tpe", replace(ALL, tuner="random"), BASE),
        Arm("all off", all_off(("bans", "floor", "plateau")), BASE),
        Arm("with experts' seeds", ALL, BASE, experts=True),
        Arm("islands without crossover", ISLANDS.without("crossover"), ISLES),
        Arm("islands with migration", ISLANDS.having("migration"), ISLES),
        Arm("two models: bandit", ALL, skills=TWO),
        Arm("two models: in turns", ALL.without("bandit"), "two models: bandit", TWO),
    )


def _others() -> tuple[Arm, ...]:
    arms = []
    for who, skills in OTHERS.items():
        arms.append(Arm(f"{who}: the defaults", ALL, skills=skills))
        arms.append(Arm(f"{who}: islands", ISLANDS, f"{who}: the defaults", skills))
        arms.append(Arm(f"{who}: with cards", CARDED, f"{who}: the defaults", skills))
        arms += [Arm(f"{who}: without {name}", ALL.without(name), f"{who}: the defaults", skills) for name in SENSITIVE]
    return tuple(arms)


ARMS: tuple[Arm, ...] = _arms()
PROGRAMMERS: tuple[Arm, ...] = _others()
"""The same mechanisms under other programmers."""


@dataclass(frozen=True)
class Outcome:
    """One run.

    Attributes:
        arrived: the evaluation that came within 2 % of the best; None if none did.
        ratio: the final time over the best; `NOTHING` where no candidate was right.
        money: USD that were spent until it arrived, or in all if it did not.
    """

    op: str
    seed: int
    arrived: int | None
    ratio: float
    evaluations: int
    money: float


@dataclass(frozen=True)
class Figures:
    """One arm's row. Intervals are pairs.

    Attributes:
        change: the mean of paired differences in evaluations: above 0 the arm is slower.
        dearer: the same in USD: above 0 the arm is dearer.
        worse: the mean of paired differences of the logarithm of the best time found: above 0 the arm ends with slower kernels.
    """

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
    dearer: float | None = None
    dearer_interval: tuple[float, float] | None = None
    worse: float | None = None
    worse_interval: tuple[float, float] | None = None

    @property
    def says(self) -> str:
        """What the comparison says."""
        if self.change_interval is None or self.dearer_interval is None or self.worse_interval is None:
            return ""
        said = [
            _said(self.change_interval, "later", "sooner"), _said(self.dearer_interval, "dearer", "cheaper"),
            _said(self.worse_interval, "worse", "better"),
        ]  # fmt: skip
        return ", ".join(word for word in said if word) or "no difference seen"


def run_one(judge: Judge, arm: Arm, seed: int, cap: int, library: Library) -> Outcome:
    """One search from start to end. It is driven by ask and tell, as any other would be."""
    land = judge.land
    own = int(digest([land.op, seed], 8), 16) >> 1  # ops are drawn apart, or one seed's luck would be all ops'
    programmer = Programmer(land, arm.skills, own, learning=arm.mechanisms.bandit)
    experts = tuple(dict.fromkeys(str(recipe["expert"]) for recipe in land.recipes)) if arm.experts else ()
    search = Search(
        land.task, experts=experts, budget=Budget(evaluations=cap), seed=own, floor_us=land.floor_us, mechanisms=arm.mechanisms,
        describe=judge.describe,
    )  # fmt: skip
    arrived, number, paid = None, 0, 0.0
    while (brief := search.ask()) is not None:
        diagnosis = brief.parents[0].diagnosis if brief.parents else None
        if arm.mechanisms.experience and arm.mechanisms.cards and brief.kind != "tune":
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
            arrived, paid = number, search.spent.money or 0.0
    best = search.best.evaluation.time_us if search.best else None
    return Outcome(
        land.op, seed, arrived, best / judge.best_us if best else NOTHING, number, paid if arrived else search.spent.money or 0.0
    )


def run_arm(judges: Sequence[Judge], arm: Arm, seeds: int, cap: int) -> tuple[Outcome, ...]:
    """All ops under all seeds. Within a seed the ops come in an order of its own and share what they learn."""
    outcomes = []
    for seed in range(seeds):
        library = Library.shipped()
        for judge in random.Random(seed).sample(list(judges), len(judges)):
            outcomes.append(run_one(judge, arm, seed, cap, library if arm.shared else Library.shipped()))
    return tuple(outcomes)


def figures(arm: Arm, outcomes: Sequence[Outcome], others: Sequence[Outcome], cap: int) -> Figures:
    """The row of an arm; `others` are the runs of the arm that it is compared with, empty for none."""
    costs = [_cost(one, cap) for one in outcomes]
    paired: list[Any] = []
    if others:
        before = {(one.op, one.seed): one for one in others}
        for cost in (lambda one: _cost(one, cap), lambda one: one.money, lambda one: math.log(one.ratio)):
            pairs = [cost(one) - cost(before[one.op, one.seed]) for one in outcomes]
            paired += [statistics.fmean(pairs), _bootstrap(pairs, statistics.fmean)]
    return Figures(
        arm.name, arm.against, len(outcomes), sum(one.arrived is not None for one in outcomes) / len(outcomes),
        statistics.median(costs), _bootstrap(costs, statistics.median), statistics.fmean(costs),
        math.exp(statistics.fmean(math.log(one.ratio) for one in outcomes)),
        statistics.fmean(one.evaluations for one in outcomes), statistics.fmean(one.money for one in outcomes), *paired,
    )  # fmt: skip


def run(
    seeds: int = 10, evaluations: int = 40, ops: Iterable[str] = (), arms: Sequence[Arm] = ARMS, rugged: bool = False
) -> tuple[Figures, ...]:  # fmt: skip
    """All arms.

    Args:
        seeds: runs of each op.
        evaluations: the cap of one run.
        ops: names in the recorded table; all by default.
        rugged: made lands in place of the recorded ones.

    Raises:
        MisuseError: an op that is not in the table.
    """
    lands = load()
    if rugged:
        lands = made_lands(lands[0])
    wanted = tuple(ops)
    known = {land.op for land in lands}
    for op in wanted:
        if op not in known:
            raise MisuseError(f"no recorded verdicts of {op!r}: choose among {', '.join(sorted(known))}")
    judges = tuple(Judge(land) for land in lands if not wanted or land.op in wanted)
    done: dict[str, tuple[Outcome, ...]] = {}
    rows = []
    for arm in arms:
        done[arm.name] = run_arm(judges, arm, seeds, evaluations)
        rows.append(figures(arm, done[arm.name], done.get(arm.against, ()), evaluations))
        print(line(rows[-1]), file=sys.stderr, flush=True)
    return tuple(rows)


def main(seeds: int, evaluations: int, ops: Iterable[str], as_json: bool, rugged: bool = False, programmers: bool = False) -> int:
    """What ``bench search`` does."""
    rows = run(seeds, evaluations, ops, PROGRAMMERS if programmers else ARMS, rugged)
    if as_json:
        found: list[dict[str, Any]] = [{**row.__dict__, "says": row.says} for row in rows]
        print(json.dumps({"seeds": seeds, "evaluations": evaluations, "near": NEAR, "made": rugged, "arms": found}))
    else:
        print(markdown(rows, seeds, evaluations, rugged))
    return 0


HEAD = (
    "arm", "arrived", "evaluations to it (median)", "mean", "USD to it", "best found", "evaluations against base", "USD against base",
    "best found against base", "says",
)  # fmt: skip


def markdown(rows: Sequence[Figures], seeds: int, cap: int, rugged: bool = False) -> str:
    """The table for people."""
    count = rows[0].runs // seeds if rows else 0
    lands = "made lands (NK, k = 1 and 3; nothing in them was measured)" if rugged else "ops (recorded verdicts, modelled for cuda:90)"
    lines = [
        f"{count} {lands} × {seeds} seeds, at most {cap} evaluations each; arrived: within 2 % of the fastest design of the table.", "",
        "| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD), *(line(row) for row in rows),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def line(row: Figures) -> str:
    """One row of the table."""
    low, high = row.median_interval
    cells = [
        row.arm, f"{row.success:.0%}", f"{row.median:g} [{low:g}, {high:g}]", f"{row.mean:.1f}", f"{row.money:.3f}", f"{row.ratio:.3f}×",
        _span(row.change, row.change_interval, "+.1f"), _span(row.dearer, row.dearer_interval, "+.3f"),
        _span(row.worse, row.worse_interval, "+.1%"), row.says,
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _span(mean: float | None, interval: tuple[float, float] | None, form: str) -> str:
    return "" if mean is None or interval is None else f"{mean:{form}} [{interval[0]:{form}}, {interval[1]:{form}}]"


def _said(interval: tuple[float, float], above: str, below: str) -> str:
    return above if interval[0] > 0 else below if interval[1] < 0 else ""


def _cost(one: Outcome, cap: int) -> float:
    return float(one.arrived if one.arrived is not None else cap + 1)


def _bootstrap(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    rng = random.Random(0)
    found = sorted(statistic(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES) - 1]

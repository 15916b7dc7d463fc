"""A scripted, stochastic programmer: a stand-in for a language model whose weaknesses are stated in figures.

It knows the moves (the structural choices of the experts, costly habits, six kinds of mistakes) but not which of them pay: that is in the
recorded table. It reads what a brief holds by one list of words a move, the same for the diagnosis's directive, the judge's bare reason and
the cards. A move that the text names is `heed` times as likely to be made as another; with ``heed = 1`` the text makes no difference. So a
mechanism helps it only as far as its words name the moves that are fast in the table.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.bench.landscape import HABITS, Land, Row
from workbench.brief import Brief, Proposal, Usage
from workbench.candidate import Candidate, Diagnosis, Evaluation, Timing, Verdict
from workbench.explain.diagnosis import diagnose
from workbench.proposers.llm.bandit import Bandit
from workbench.proposers.llm.rewards import reward_of
from workbench.search.members import point_key

WORDS: Mapping[str, str] = {
    "passes": r"\bone pass|\bpass(es)?\b|whole row|in registers|\bonce\b|\bloop\b",
    "rows": r"\brows\b.*\bprogram\b|\bprogram\b.*\brows\b",
    "cache": r"evict|streamed|cache hint|used once",
    "grid": r"persistent|\bwaves?\b|fewer programs|launch cost|several rows",
    "prefetch": r"in flight|pipelin|prefetch|num_stages|asynchron",
    "online": r"\bonline\b|exp2?\b|exponential|reciprocal",
    "statistics": r"welford|two[- ]pass|variance",
    "order": r"grouped|\bl2\b|share tiles",
    "edges": r"\bwrap|\bmasks?\b|divide",
    "split": r"\bsplit",
    "expert": r"tile|coalesc|neighbouring (threads|addresses)|transpos|contiguous",
    "habit": r"\bfuse|launches|\bcop(y|ies)\b|clone|read once and each output written once|intermediate",
    "calls a function that is not there": r"no attribute|does not have|function",
    "range from one": r"arange|power of (2|two)",
    "asks for a dimension that is not there": r"dimension|stride|indexerror",
    "mask one short": r"\bmask|\bgrid\b|last index|last tile|tail|edge|never written|beside",
    "result scaled": r"scaled|constant|divisor|factor",
    "result rounded": r"precision|rounded|float32|too early",
}
"""How each move is named in texts."""

_CLEAR = (Verdict.DOES_NOT_BUILD, Verdict.CRASHED)


@dataclass(frozen=True)
class Skill:
    """How good the programmer is. All are assumptions, and `bench search` varies them.

    Attributes:
        heed: how much likelier a move becomes by being named.
        slip: chance of a new mistake for each choice that a step or crossover changes. A seed has two chances, a repair a third of one.
        clear: how much likelier a mistake is found when its message names line and cause, as a compiler's or an exception's does. One
            that only shows in wrong figures is found as far as `heed` goes.
        habit: chance of each costly habit in a seed.
        price: USD of an answer.
    """

    heed: float = 4.0
    slip: float = 0.25
    clear: float = 20.0
    habit: float = 0.4
    price: float = 0.01


@dataclass(frozen=True)
class Design:
    """A candidate as the table knows it: a recipe's place, its habits, and at most one mistake."""

    recipe: int
    habits: tuple[str, ...] = ()
    bug: str = ""


class Programmer:
    """Answers briefs from one land's moves. Several skills are several models, chosen by the real bandit, or in turns."""

    def __init__(self, land: Land, skills: Mapping[str, Skill], seed: int, learning: bool = True) -> None:
        self.land, self.skills = land, dict(skills)
        self.bandit = Bandit(tuple(skills), seed=seed, expected={name: one.price for name, one in skills.items()}, learning=learning)
        self.bugs = tuple(row.bug for row in land.rows if row.bug)
        self._places: dict[Any, int] = {frozenset(recipe.items()): place for place, recipe in reversed(list(enumerate(land.recipes)))}
        keys = dict.fromkeys(name for one in land.recipes for name in one)
        self._values = {key: tuple(dict.fromkeys(one[key] for one in land.recipes if key in one)) for key in keys}
        self._made: dict[str, str] = {}
        self._seed = seed

    def propose(self, brief: Brief) -> Proposal:
        """One answer; a design that was proposed before comes back as a new wording, as models do."""
        rng = random.Random(f"{self._seed}:{brief.id}")
        if brief.expert:  # the built-in expert writes this one: no model, no price
            place = next(place for place, one in enumerate(self.land.recipes) if one["expert"] == brief.expert["expert"])
            return Proposal(brief.id, self._candidate(brief, Design(place), "the expert as it is", (), rng, "experts"))
        model = self.bandit.choose(brief.kind).model
        skill = self.skills[model]
        design, plan, cites = self._write(brief, skill, rng)
        candidate = self._candidate(brief, design, plan, cites, rng, f"llm:{model}")
        self._made[candidate.id] = model
        return Proposal(brief.id, candidate, usage=Usage(tokens_in=3000, tokens_out=1000, money=skill.price))

    def observe(self, brief: Brief, proposal: Proposal, evaluation: Evaluation) -> None:
        """What came of it, for the bandit."""
        model = self._made.get(proposal.candidate.id) if proposal.candidate else None
        reward = reward_of(brief, evaluation) if model else None
        if model and reward is not None:
            self.bandit.learn(brief.kind, model, reward, self.skills[model].price)

    # ---- writing

    def _write(self, brief: Brief, skill: Skill, rng: random.Random) -> tuple[Design, str, tuple[str, ...]]:
        if not brief.parents:
            habits = tuple(name for name in HABITS if rng.random() < skill.habit)
            design, plan, cites = self._moved(Design(rng.randrange(len(self.land.recipes)), habits), brief, skill, rng)
            return self._slipped(design, 1 - (1 - skill.slip) ** 2, rng), plan, cites
        parent = read(brief.parents[0].candidate.source)
        if brief.kind == "repair":
            guess = rng.choices(self.bugs, [_suspicion(bug, brief, skill) for bug in self.bugs])[0]
            mended = replace(parent, bug="") if guess == parent.bug else parent
            return self._slipped(mended, skill.slip / 3, rng), f"rewrite: {guess}", ()
        if brief.kind == "crossover":
            other = read(brief.parents[1].candidate.source)
            one, two = self.land.recipes[parent.recipe], self.land.recipes[other.recipe]
            taken = {key: value for key, value in two.items() if rng.random() < 0.5}
            design = Design(self._nearest({**one, **taken}), tuple(name for name in parent.habits if name in other.habits))
            return self._slipped(design, self._risk(parent, design, skill), rng), f"with {taken}", ()
        design, plan, cites = self._moved(parent, brief, skill, rng)
        return self._slipped(design, self._risk(parent, design, skill), rng), plan, cites

    def _risk(self, before: Design, after: Design, skill: Skill) -> float:
        """Each choice that changes is a chance to slip: large steps fail more often than small ones."""
        one, two = self.land.recipes[before.recipe], self.land.recipes[after.recipe]
        changes = sum(one.get(key) != two.get(key) for key in {**one, **two})
        return 1.0 - math.pow(1.0 - skill.slip, max(changes, 1))

    def _moved(self, design: Design, brief: Brief, skill: Skill, rng: random.Random) -> tuple[Design, str, tuple[str, ...]]:
        """One move, drawn by what the brief names; cards that warn make a move as much less likely."""
        moves = list(self._moves(design))
        told = f"{brief.directive} {_summary(brief)} {' '.join(brief.hints)}"
        role = f"{brief.island.aim} {' '.join(brief.island.hints)}"
        weights, cites = [], []
        for key, value, _ in moves:
            weight = skill.heed if _names(key, told) else 1.0
            weight *= skill.heed**0.5 if _names(key, role) else 1.0
            named = []
            for card in brief.cards:
                if re.search(rf"\b{re.escape(f'{key} = {value}')}( \(|$)", card.advice, re.M):
                    warns = card.advice.startswith("did not help")
                    weight *= 1 / skill.heed if warns else skill.heed
                    named += [] if warns else [card.id]
                elif "# " not in card.advice and _names(key, card.advice):
                    weight *= skill.heed**0.5
                    named.append(card.id)
            weights.append(weight)
            cites.append(tuple(named))
        place = rng.choices(range(len(moves)), weights)[0]
        key, value, after = moves[place]
        return after, f"{key} = {value}", cites[place]

    def _moves(self, design: Design) -> Iterator[tuple[str, Any, Design]]:
        """All single changes: another value of a choice, another expert, one habit less."""
        recipe = self.land.recipes[design.recipe]
        for key, values in self._values.items():
            for value in values:
                if recipe.get(key) != value:
                    yield key, value, replace(design, recipe=self._nearest({**recipe, key: value}, key))
        for name in design.habits:
            yield "habit", f"no longer {name}", replace(design, habits=tuple(one for one in design.habits if one != name))

    def _nearest(self, wanted: Mapping[str, Any], must: str = "") -> int:
        """The recipe with most of these choices: not all go together."""
        if (exact := self._places.get(frozenset(wanted.items()))) is not None:
            return exact

        def fits(place: int) -> tuple[bool, int, int]:
            one = self.land.recipes[place]
            return one.get(must) == wanted.get(must), sum(one.get(key) == value for key, value in wanted.items()), -place

        return max(range(len(self.land.recipes)), key=fits)

    def _slipped(self, design: Design, chance: float, rng: random.Random) -> Design:
        return replace(design, bug=rng.choice(self.bugs)) if not design.bug and rng.random() < chance else design

    def _candidate(
        self, brief: Brief, design: Design, plan: str, cites: tuple[str, ...], rng: random.Random, proposer: str
    ) -> Candidate:  # fmt: skip
        source = write(self.land, design, rng.getrandbits(16))
        return Candidate(brief.candidate, "triton", source, self.land.task.candidate_entry, proposer=proposer, plan=plan, cites=cites)


def _suspicion(bug: str, brief: Brief, skill: Skill) -> float:
    failed = brief.parents[0].evaluation
    if failed.verdict in _CLEAR and _names(bug, failed.reason):
        return skill.clear
    return skill.heed if _names(bug, f"{brief.directive} {failed.reason} {_summary(brief)}") else 1.0


def _summary(brief: Brief) -> str:
    return brief.parents[0].diagnosis.summary if brief.parents and brief.parents[0].diagnosis else ""


def _names(move: str, text: str) -> bool:
    return bool(move in WORDS and re.search(WORDS[move], text.lower()))


# ---- designs as text, and their verdicts


def write(land: Land, design: Design, wording: int = 0) -> str:
    """A design as a module's text: one choice a line, so that diffs between two of them say what was changed."""
    choices = "".join(f"# {key}: {value}\n" for key, value in land.recipes[design.recipe].items())
    habits = "".join(f"# habit: {name}\n" for name in design.habits)
    tune = {name: list(values) for name, values in land.tunes[design.recipe].items()}
    body = f"def {land.task.candidate_entry}({', '.join(spec.name for spec in land.task.inputs)}):\n    ...\n"
    return f"# recipe {design.recipe}, wording {wording}\n{choices}{habits}# bug: {design.bug}\nTUNE = {tune!r}\n\n\n{body}"


def read(source: str) -> Design:
    """The design that `write` wrote."""
    found = re.match(r"# recipe (\d+),", source)
    bug = re.search(r"^# bug: (.*)$", source, re.M)
    assert found is not None and bug is not None
    return Design(int(found[1]), tuple(re.findall(r"^# habit: (.*)$", source, re.M)), bug[1])


class Judge:
    """Looks verdicts up. A mistake's verdict is that of the default choices; a habit adds its launch's time. One serves many runs."""

    def __init__(self, land: Land) -> None:
        self.land = land
        self._task = land.task.id
        self._plain = {(row.recipe, point_key(row.parameters)): row for row in land.rows if not row.habit and not row.bug}
        self._bugs = {row.bug: row for row in land.rows if row.bug}
        self._habits = {row.habit: row for row in land.rows if row.habit}
        base = self._row(Design(0), {})
        self._extra = {name: (row.time_us or 0.0) - (base.time_us or 0.0) for name, row in self._habits.items()}
        self.best_us = min(row.time_us for row in self._plain.values() if row.time_us)
        self._known: dict[tuple[int, tuple[str, ...]], tuple[Evaluation, Diagnosis]] = {}

    def evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], number: int) -> tuple[Evaluation, Diagnosis]:
        """What the judge said of that design at those parameters."""
        design = read(candidate.source)
        row = self._row(design, parameters)
        found, why = self._judged(row, design.habits)
        name = f"{candidate.id}.{number}"
        return replace(found, id=name, candidate=candidate.id, parameters=dict(parameters)), replace(why, evaluation=name)

    def describe(self, candidate: Candidate, evaluation: Evaluation) -> Sequence[str]:
        """The recorded descriptors of its strategy."""
        return self._row(read(candidate.source), evaluation.parameters).descriptors

    def _judged(self, row: Row, habits: tuple[str, ...]) -> tuple[Evaluation, Diagnosis]:
        key = (id(row), habits)
        if key not in self._known:
            time = None
            if row.verdict is Verdict.RIGHT and row.time_us is not None:
                time = row.time_us + sum(self._extra[name] for name in habits)
            seen = self._habits[habits[0]] if habits and time else row  # what a habit costs is what its figures show
            found = Evaluation(
                id="", candidate="", task=self._task, verdict=row.verdict, reason=row.reason, judged_by="recorded", matched=row.matched,
                timing=None if time is None else Timing(time, time, time, time, time, modelled=True),
                witness=seen.witness, labels=seen.labels, resources=seen.resources, modelled=seen.modelled,
            )  # fmt: skip
            why = diagnose(found, self.land.task, self.land.floor_us)
            if seen.advice:
                kind, summary, directive = seen.advice
                why = replace(why, kind=kind, summary=summary, directive=directive)
            self._known[key] = found, why
        return self._known[key]

    def _row(self, design: Design, parameters: Mapping[str, Any]) -> Row:
        if design.bug:
            return self._bugs[design.bug]
        space = self.land.tunes[design.recipe]
        return self._plain[design.recipe, point_key({name: parameters.get(name, values[0]) for name, values in space.items()})]

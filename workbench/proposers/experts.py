"""The built-in experts as a proposer: no model, no key, no tokens.

A candidate's recipe is ``{"expert": name, **structural choices}``. A seed instantiates one, a step changes one choice of its parent's,
a crossover mixes two, a repair goes back to safer choices. Which change comes first follows the island's role, the parent's diagnosis
and the person's hints; everything is decided by the brief alone, so that the same brief has the same answer.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.brief import Brief, Parent, Proposal
from workbench.candidate import Candidate
from workbench.errors import WorkbenchError
from workbench.knowledge import experts
from workbench.proposers.base import nothing
from workbench.records import digest

Recipe = Mapping[str, Any]

_REMEDIES: Mapping[str, tuple[str, ...]] = {
    "memory": ("passes", "cache", "prefetch", "order"),
    "l2": ("order", "cache", "passes"),
    "compute": ("precision", "online", "statistics", "passes"),
    "launches": ("passes", "split", "grid"),
    "occupancy": ("rows", "grid", "passes", "prefetch"),
    "spills": ("passes", "rows", "prefetch"),
    "build": ("prefetch", "passes", "grid"),
    "launch": ("prefetch", "grid", "passes"),
    "precision": ("precision", "statistics"),
}
"""Which choices a diagnosis of that kind puts first."""


class ExpertProposer:
    """Answers briefs from the expert kernels that fit the task's graph."""

    name = "experts"

    def __init__(self) -> None:
        # What was written before, by task and recipe: an island that has tried nearly everything looks through all of it each time.
        self._sources: dict[tuple[str, str], str | None] = {}

    async def propose(self, brief: Brief) -> Proposal:
        """An untried variant, or none with the reason."""
        names = self._fitting(brief)
        if not names:
            return nothing(brief, f"no expert fits: {experts.why_none(brief.task)}")
        seen = set(brief.tried)
        for recipe, plan in self._ideas(brief, names):
            if _banned(recipe, brief.bans):
                continue
            source = self._write(brief, recipe)
            if source is not None and digest(source) not in seen:
                return Proposal(brief=brief.id, candidate=self._candidate(brief, recipe, source, plan))
        return nothing(brief, "nothing new on this island: every structure of the fitting experts was tried")

    def _write(self, brief: Brief, recipe: Recipe) -> str | None:
        """The source of a recipe; None where its choices don't go together."""
        key = (brief.task.id, digest(recipe))
        if key not in self._sources:
            try:
                choices = {name: value for name, value in recipe.items() if name != "expert"}
                self._sources[key] = experts.write(recipe["expert"], brief.task, choices)
            except (WorkbenchError, experts.UnsupportedError):
                self._sources[key] = None
        return self._sources[key]

    def _fitting(self, brief: Brief) -> tuple[str, ...]:
        found = tuple(match.expert for match in experts.match(brief.task))
        wanted = (brief.expert.get("expert"), *brief.experts)
        if any(name in experts.names() and experts.backend(name) == "cuda" for name in wanted):  # the run can judge it
            found = tuple(match.expert for match in experts.match(brief.task, ("triton", "cuda")))
        return tuple(dict.fromkeys([name for name in wanted if name in found] + list(found)))

    def _candidate(self, brief: Brief, recipe: Recipe, source: str, plan: str) -> Candidate:
        return Candidate(
            id=brief.candidate, backend=experts.backend(recipe["expert"]), source=source, entry=brief.task.candidate_entry,
            recipe=dict(recipe), parents=tuple(parent.candidate.id for parent in brief.parents), island=brief.island.name,
            proposer=self.name, plan=plan, brief=brief.id, cites=(recipe["expert"],),
        )  # fmt: skip

    def _ideas(self, brief: Brief, names: tuple[str, ...]) -> Iterator[tuple[Recipe, str]]:
        """Recipes in the order in which they deserve to be tried, each with its plan."""
        own = [parent for parent in brief.parents if parent.candidate.recipe.get("expert") in names]
        if brief.kind == "repair" and own:
            yield from _repairs(brief, own[0])
        elif brief.kind == "crossover" and len(own) > 1:
            yield from _crossings(brief, own[0], own[1])
        if own:
            yield from _changes(brief, own[0])
        given = {key: value for key, value in brief.expert.items() if key != "expert"}
        for name in names:
            yield from _seeds(brief, name, given if name == brief.expert.get("expert") else {})


def _seeds(brief: Brief, name: str, given: Recipe) -> Iterator[tuple[Recipe, str]]:
    """The expert as it is by default, then with one of the island's own choices changed, then with anything changed."""
    space = experts.choices(name, brief.task)
    default = {"expert": name, **{key: values[0] for key, values in space.items()}, **given}
    why = next((match.why for match in experts.match(brief.task, (experts.backend(name),)) if match.expert == name), "")
    yield default, f"Start from the expert {name}: {why}."
    for key, value in _single(brief, name, space, default):
        yield {**default, key: value}, f"Start from the expert {name} with {key} = {value}: {experts.explain(name, key, value)}."
    yield from _pairs(brief, name, space, default)


def _changes(brief: Brief, parent: Parent) -> Iterator[tuple[Recipe, str]]:
    """One choice changed; then two."""
    recipe = parent.candidate.recipe
    name = recipe["expert"]
    space = experts.choices(name, brief.task)
    kind = parent.diagnosis.kind if parent.diagnosis else ""
    for key, value in _single(brief, name, space, recipe, kind):
        plan = f"Change {key} from {recipe.get(key)} to {value}: {experts.explain(name, key, value)}."
        yield {**recipe, key: value}, plan
    yield from _pairs(brief, name, space, recipe)


def _repairs(brief: Brief, parent: Parent) -> Iterator[tuple[Recipe, str]]:
    """Back to the defaults, choice by choice, what the diagnosis points at first; then all at once."""
    recipe = parent.candidate.recipe
    name = recipe["expert"]
    space = experts.choices(name, brief.task)
    kind = parent.diagnosis.kind if parent.diagnosis else ""
    unusual = [key for key in _ordered(space, _REMEDIES.get(kind, ())) if recipe.get(key) != space[key][0]]
    for key in unusual:
        yield (
            {**recipe, key: space[key][0]},
            f"Go back to {key} = {space[key][0]}, the safer choice: {experts.explain(name, key, space[key][0])}.",
        )
    if len(unusual) > 1:
        yield {"expert": name, **{key: values[0] for key, values in space.items()}}, f"Go back to the expert {name} as it is by default."


def _crossings(brief: Brief, one: Parent, other: Parent) -> Iterator[tuple[Recipe, str]]:
    """The first parent with some of the choices in which the second differs, most of them first."""
    recipe, donor = one.candidate.recipe, other.candidate.recipe
    name = recipe["expert"]
    space = experts.choices(name, brief.task)
    differ = [key for key in space if key in donor and donor[key] in space[key] and donor[key] != recipe.get(key)]
    random.Random(brief.seed).shuffle(differ)
    for count in range(len(differ), 0, -1):
        for keys in itertools.combinations(differ, count):
            taken = ", ".join(f"{key} = {donor[key]}" for key in keys)
            plan = f"{one.candidate.id} with {taken} of {other.candidate.id}: {experts.explain(name, keys[0], donor[keys[0]])}."
            yield {**recipe, **{key: donor[key] for key in keys}}, plan


def _single(brief: Brief, name: str, space: Mapping[str, tuple[Any, ...]], recipe: Recipe, kind: str = "") -> Iterator[tuple[str, Any]]:
    """Single changes: what the person hinted at, then what the diagnosis asks for, then the island's own, then the rest."""
    role = [key for key in space if experts.role(name, key) == brief.island.name]
    hinted = [key for key, values in space.items() if any(_mentions(hint, key, value) for hint in brief.hints for value in values)]
    remedies = [key for key in _REMEDIES.get(kind, ()) if key in role] + role
    for key in _ordered(space, [*hinted, *remedies, *_REMEDIES.get(kind, ())]):
        values = [value for value in space[key] if value != recipe.get(key)]
        values.sort(key=lambda value: not any(_mentions(hint, key, value) for hint in brief.hints))
        for value in values:
            yield key, value


def _pairs(brief: Brief, name: str, space: Mapping[str, tuple[Any, ...]], recipe: Recipe) -> Iterator[tuple[Recipe, str]]:
    """Two and more changes at once, in an order drawn from the brief's seed: what is left when single changes are used up."""
    keys = list(space)
    combinations = list(itertools.islice(itertools.product(*space.values()), 4096))
    random.Random(brief.seed).shuffle(combinations)
    combinations.sort(key=lambda values: sum(value != recipe.get(key) for key, value in zip(keys, values, strict=True)))
    for values in combinations:
        changed = [(key, value) for key, value in zip(keys, values, strict=True) if value != recipe.get(key)]
        if len(changed) < 2:
            continue
        said = " and ".join(f"{key} = {value}" for key, value in changed)
        key, value = changed[0]
        yield {"expert": name, **dict(zip(keys, values, strict=True))}, f"Change {said} together: {experts.explain(name, key, value)}."


def _ordered(space: Mapping[str, Any], first: Iterable[str]) -> list[str]:
    return [key for key in dict.fromkeys([*first, *space]) if key in space]


def _banned(recipe: Recipe, bans: Iterable[str]) -> bool:
    return any(_mentions(ban, key, value) for ban in bans for key, value in recipe.items())


def _mentions(text: str, key: str, value: Any) -> bool:
    """Whether a person's words name this value: "try split-K", "no persistent kernels". Ordinary words name nothing."""
    words = "".join(character if character.isalnum() else " " for character in text.lower()).split()
    joined = "".join(words)
    name = str(value).lower()
    if name in _PLAIN_WORDS or key == "expert":
        return False
    return name in words or (len(name) > 4 and name.replace("_", "") in joined)


_PLAIN_WORDS = frozenset(("one", "several", "row", "none", "off", "default", "plain", "block", "keep", "mask"))

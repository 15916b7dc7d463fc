"""From an idea to what a proposer is told: the role, the directive, the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from workbench.brief import Role
from workbench.search.ideas import Idea
from workbench.search.islands import Island
from workbench.search.plateau import Plateau
from workbench.search.roles import EVERYTHING, ROLES


def turn_seed(seed: int, number: int) -> int:
    """The seed of one ask: 31 bits, different for every ask of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{number}".encode()).digest()[:4], "big") >> 1


def hints_for(island: Island, islands: Sequence[Island], hints: Sequence[str]) -> tuple[str, ...]:
    """The person's hints that this island gets: those for all, and those that name it, as in ``on tiles and parameters: two rows``."""
    names = {one.name for one in islands}
    heard = []
    for hint in hints:
        where, _, text = hint.removeprefix("on ").partition(": ")
        if not hint.startswith("on ") or where not in names:
            heard.append(hint)
        elif where == island.name:
            heard.append(text)
    return tuple(heard)


def role_of(island: Island, islands: Sequence[Island], plateau: Plateau) -> Role:
    """The island's role; after a plateau its neighbour's aim and hints, under its own name.

    Where there is one population the roles take turns in it, one an ask.
    """
    if island.role is EVERYTHING:
        return replace(ROLES[(island.asked - 1) % len(ROLES)], name=island.name)
    if not plateau.shift:
        return island.role
    other = islands[(island.index + plateau.shift) % len(islands)].role
    return replace(other, name=island.name)


def directive_of(idea: Idea, role: Role, plateau: Plateau, diagnosed: bool = True) -> str:
    """The one thing to do. Without diagnosis it is the island's aim, and for a repair what the judge said."""
    if idea.directive:
        return idea.directive
    if idea.kind == "seed":
        return "be right; speed comes later"
    if idea.kind == "tune":
        return "try these parameters"
    if idea.kind == "person":
        return "the person's own variant"
    if idea.kind == "crossover":
        return f"join what makes each parent fast; the aim: {role.aim}"
    parent = idea.parents[0]
    if idea.kind == "repair":
        found = parent.diagnosis.directive if diagnosed and parent.diagnosis else parent.evaluation.reason
        return f"keep the plan ({parent.plan or 'as the code has it'}) and make the smallest change that mends it: {found}"
    # On a plateau the diagnosis has had its say often enough, and near the floor it names nothing to do: now the role speaks.
    if plateau.stage or parent.diagnosis is None or not diagnosed or parent.diagnosis.kind == "floor":
        return role.aim
    return parent.diagnosis.directive

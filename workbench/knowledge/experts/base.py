"""What an expert is: when it fits, which structures it can take, and how it writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.candidate import Backend
from workbench.knowledge.program import Program
from workbench.task import Task

FUSION, TRAFFIC, TILES, ALGORITHM = (
    "fusion and launches", "memory traffic and layout", "tiles and parameters", "instructions and algorithm",
)  # fmt: skip
"""The islands' roles, as `search.roles` names them: each structural choice belongs to one."""


@dataclass(frozen=True)
class Match:
    """An expert that fits an op. Scores only order the experts of one op; `why` is for people."""

    expert: str
    score: float
    why: str


@dataclass(frozen=True)
class Expert:
    """One family of kernels.

    Attributes:
        card: why it is fast.
        fits: a match, or None; may raise UnsupportedError with the reason.
        choices: structural choices with their values, default first.
        write: the module with every choice given.
        roles: the island's role of each choice.
        reasons: what a choice's value does and why it can help, by (choice, value); (choice, None) for any value.
        backend: what it is written in. CUDA C++ can be judged on a GPU only.
    """

    name: str
    card: str
    fits: Callable[[Task, Program], Match | None]
    choices: Callable[[Task, Program], dict[str, tuple[Any, ...]]]
    write: Callable[[Task, Program, Mapping[str, Any]], str]
    roles: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[tuple[str, Any], str] = field(default_factory=dict)
    backend: Backend = "triton"

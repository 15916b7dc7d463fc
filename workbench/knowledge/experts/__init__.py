"""The expert kernels: parametrised Triton and CUDA C++ programs, chosen by an op's graph.

Adding one is one file here with an `Expert`, one line in `_EXPERTS`, and one test. Everything in this room is pure: it reads the
Task's graph, and neither torch nor a GPU is needed to write a kernel.

>>> [match.expert for match in match(task)]                       # doctest: +SKIP
['rows']
>>> print(write("rows", task, {"passes": "row"}))                 # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.candidate import Backend
from workbench.errors import MisuseError
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts.attention import ATTENTION
from workbench.knowledge.experts.base import Expert, Match
from workbench.knowledge.experts.chain import CHAIN
from workbench.knowledge.experts.columns import COLUMNS
from workbench.knowledge.experts.convolution import CONVOLUTION
from workbench.knowledge.experts.cross_entropy import CROSS_ENTROPY
from workbench.knowledge.experts.cuda_pointwise import CUDA_POINTWISE
from workbench.knowledge.experts.cuda_ring import CUDA_RING
from workbench.knowledge.experts.cuda_rows import CUDA_ROWS
from workbench.knowledge.experts.cuda_split import CUDA_SPLIT
from workbench.knowledge.experts.cuda_team import CUDA_TEAM
from workbench.knowledge.experts.cuda_tile import CUDA_TILE
from workbench.knowledge.experts.matmul import MATMUL
from workbench.knowledge.experts.pointwise import POINTWISE
from workbench.knowledge.experts.reduction import REDUCTION
from workbench.knowledge.experts.rows import ROWS
from workbench.knowledge.experts.tile import TILE
from workbench.knowledge.experts.window import WINDOW
from workbench.knowledge.lowering import lower
from workbench.knowledge.program import Program
from workbench.task import Task

_programs: dict[str, Program] = {}
"""The last tasks' programs: choices, matches and sources of one task are asked for many times."""

_EXPERTS: Mapping[str, Expert] = {
    expert.name: expert
    for expert in (
        POINTWISE, TILE, ROWS, COLUMNS, REDUCTION, CROSS_ENTROPY, MATMUL, WINDOW, CONVOLUTION, ATTENTION, CHAIN,
        CUDA_POINTWISE, CUDA_TILE, CUDA_ROWS, CUDA_RING, CUDA_TEAM, CUDA_SPLIT,
    )
}  # fmt: skip


def names() -> tuple[str, ...]:
    """Every expert there is."""
    return tuple(_EXPERTS)


def match(task: Task, backends: Sequence[Backend] = ("triton",)) -> tuple[Match, ...]:
    """The experts that can write this op, best first; empty where there is none.

    Args:
        backends: what may be written. CUDA C++ is judged on a GPU only, so it is of use where the run has one.
    """
    try:
        program = _program(task)
    except UnsupportedError:
        return ()
    found = []
    for expert in _EXPERTS.values():
        if expert.backend not in backends or (expert.backend == "cuda" and any(output.into for output in program.outputs)):
            continue
        try:
            fit = expert.fits(task, program)
        except UnsupportedError:
            continue
        if fit is not None:
            found.append(fit)
    return tuple(sorted(found, key=lambda fit: -fit.score))


def why_none(task: Task) -> str:
    """One line on why no expert matches."""
    try:
        program = _program(task)
    except UnsupportedError as error:
        return str(error)
    reasons = []
    for expert in _EXPERTS.values():
        try:
            if expert.fits(task, program) is not None:
                return ""
        except UnsupportedError as error:
            reasons.append(f"{expert.name}: {error}")
    return "; ".join(reasons) or "no expert is made for this combination of ops"


def choices(expert: str, task: Task) -> dict[str, tuple[Any, ...]]:
    """The structural choices that the search recombines, each with its values, default first."""
    return _expert(expert).choices(task, _program(task))


def write(expert: str, task: Task, choices: Mapping[str, Any]) -> str:
    """A candidate's source. Choices that are not given take their defaults.

    Raises:
        MisuseError: an unknown expert, choice or value.
        UnsupportedError: the expert can't write this op, or not with these choices together.
    """
    chosen = _expert(expert)
    program = _program(task)
    space = chosen.choices(task, program)
    for name, value in choices.items():
        if name not in space or value not in space[name]:
            raise MisuseError(f"{expert} has no choice {name}={value!r} for this op: it has {space}")
    return chosen.write(task, program, {**{name: values[0] for name, values in space.items()}, **choices})


def card(expert: str) -> str:
    """Why the expert is fast: what a proposer cites, and a person reads."""
    return _expert(expert).card


def backend(expert: str) -> Backend:
    """What the expert writes."""
    return _expert(expert).backend


def role(expert: str, choice: str) -> str:
    """The island whose kind of idea this choice is."""
    return _expert(expert).roles.get(choice, "tiles and parameters")


def explain(expert: str, choice: str, value: Any) -> str:
    """One clause on what this choice does and why it can help."""
    chosen = _expert(expert)
    return chosen.reasons.get((choice, value)) or chosen.reasons.get((choice, None)) or f"{choice} = {value}"


def _program(task: Task) -> Program:
    key = task.id
    if key not in _programs:
        if len(_programs) > 32:
            _programs.clear()
        _programs[key] = lower(task)
    return _programs[key]


def _expert(name: str) -> Expert:
    try:
        return _EXPERTS[name]
    except KeyError:
        raise MisuseError(f"unknown expert {name!r}: choose one of {', '.join(_EXPERTS)}") from None


__all__ = ["Expert", "Match", "UnsupportedError", "backend", "card", "choices", "explain", "match", "names", "role", "why_none", "write"]

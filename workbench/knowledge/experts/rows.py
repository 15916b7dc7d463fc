"""Softmax, norms and whatever else takes its statistics along the contiguous dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts.base import Expert, Match
from workbench.knowledge.experts.row_family import REASONS, ROLES, check, plans, row_choices, write_rows
from workbench.knowledge.program import Program
from workbench.task import Task

CARD = """\
A row's statistics (its maximum, sum, mean, variance) and everything elementwise around them need each element once, if the row stays on
the chip between its read and its write. Registers hold rows of up to some 32 thousand elements: one program loads a whole row, reduces it,
and stores the result, so that the op moves one read and one write, the least possible. Short rows go several to a program. Longer
rows are walked in blocks with the statistics in one pass (online softmax, Welford), the second pass reading what the cache still
holds; few and very long rows are split over programs. A persistent grid fetches the next row while the current one is reduced."""


def _fits(task: Task, program: Program) -> Match | None:
    plan = plans(program)[0]
    if not plan.contiguous or not plan.full_outputs:
        return None
    return Match("rows", 2.0, f"statistics of rows of {plan.length} elements, {plan.rows} rows: one read, one write")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return row_choices(task, plans(program)[0])


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    plan = plans(program)[0]
    check(plan, choices)
    if not plan.full_outputs:
        raise UnsupportedError("its results have one element a row")
    return write_rows(task, program, choices, f"{task.name}: row statistics and all that surrounds them, fused.")


ROWS = Expert("rows", CARD, _fits, _choices, _write, ROLES, REASONS)

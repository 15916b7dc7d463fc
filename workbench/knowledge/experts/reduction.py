"""Sums, means, extremes, norms and losses: results with one element a row, or one in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.experts.base import Expert, Match
from workbench.knowledge.experts.row_family import REASONS, ROLES, check, plans, row_choices, write_rows
from workbench.knowledge.program import Program
from workbench.task import Task

CARD = """\
A reduction is one read of its input; what precedes it elementwise costs nothing, and what follows is tiny. It is fast when every
multiprocessor has bytes in flight all the time: each lane reduces what it sees in registers and lanes are combined once, at the end.
With few rows (a loss has one) a row is split over many programs, whose partial results a second, tiny launch combines: always in the
same order, so that the result is the same in every run, which atomics can't promise."""


def _fits(task: Task, program: Program) -> Match | None:
    found = plans(program)
    if found[0].full_outputs or program.of_kind("index", "gather"):
        return None
    rows = "one result" if not found[0].kept else f"{found[0].rows} rows of {found[0].length}"
    then = ", then over the rows" if len(found) > 1 else ""
    return Match("reduction", 2.0, f"a reduction, {rows}{then}: one read")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return row_choices(task, plans(program)[0])


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    check(plans(program)[0], choices)
    return write_rows(task, program, choices, f"{task.name}: everything before the reduction fused into it, and everything after.")


REDUCTION = Expert("reduction", CARD, _fits, _choices, _write, ROLES, REASONS)

"""Statistics along a dimension that is not the contiguous one: softmax over channels, a norm over a middle dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.experts.base import Expert, Match
from workbench.knowledge.experts.row_family import REASONS, ROLES, check, plans, row_choices, write_rows
from workbench.knowledge.program import Program
from workbench.task import Task

CARD = """\
When the reduced dimension is not the contiguous one, neighbouring threads must take neighbouring columns, not neighbouring elements of
the reduced dimension: a tile of many columns by the whole (or a block of the) reduced dimension, read in wide rows, reduced across
registers. Transposing first would cost a whole extra read and write. Where the tile fits in registers, each element is read once."""


def _fits(task: Task, program: Program) -> Match | None:
    plan = plans(program)[0]
    if plan.contiguous or not plan.full_outputs:
        return None
    return Match("columns", 2.0, f"statistics along a strided dimension of {plan.length} elements: tiles of contiguous columns")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return row_choices(task, plans(program)[0])


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    check(plans(program)[0], choices)
    return write_rows(task, program, choices, f"{task.name}: statistics along a strided dimension, and all that surrounds them, fused.")


COLUMNS = Expert("columns", CARD, _fits, _choices, _write, ROLES, REASONS)

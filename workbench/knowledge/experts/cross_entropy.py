"""Cross entropy: log-softmax, the target's element, and the mean, without ever writing the probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts.base import Expert, Match
from workbench.knowledge.experts.row_family import REASONS, ROLES, check, plans, row_choices, write_rows
from workbench.knowledge.program import Program
from workbench.task import Task

CARD = """\
The loss of a row is its log-sum-exp less its target's logit: one read of the logits, and nothing as large is ever written. Eager
writes the log-probabilities and reads them back. The target's logit is one load of its own, issued after the row has passed: by then it
is in the cache. At a vocabulary's length instructions cost nearly what the memory does, so a loop keeps them few: each thread finds the
maximum of all that it has loaded, rescales its sum once for it, and takes one exponential an element; threads meet once, at the end,
so that no block waits for a barrier. A row of up to some 32 thousand elements also fits in one program's registers. The mean over
rows is a second, tiny launch with a fixed order."""


def _fits(task: Task, program: Program) -> Match | None:
    found = plans(program)
    if not program.of_kind("index", "gather") or found[0].full_outputs:
        return None
    if not any(track.kind == "online" for tracks in found[0].tracks(True, True) for track in tracks):
        raise UnsupportedError("it picks elements, but not from a log-softmax")
    return Match("cross_entropy", 3.0, f"log-softmax and its target's element over {found[0].length} classes: one read of the logits")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    return row_choices(task, plans(program)[0])


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    check(plans(program)[0], choices)
    return write_rows(task, program, choices, f"{task.name}: cross entropy in one read of the logits.")


CROSS_ENTROPY = Expert("cross_entropy", CARD, _fits, _choices, _write, ROLES, REASONS)

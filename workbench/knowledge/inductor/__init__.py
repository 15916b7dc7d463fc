"""Inductor's own kernels as a candidate: what ``torch.compile`` generated for an op, in a module that needs torch and Triton alone.

The generated module is read by `ast` and never run. Its ``@triton.jit`` kernels are kept as they are but for Inductor's helpers, in whose
place stand own functions; its wrapper becomes a launcher with plain launches; the configuration that Inductor chose is each kernel's first
point of ``TUNE``. What this can't turn raises `UnsupportedError` with the reason in one line.

>>> source = turn(generated, task)                                # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.inductor.module import turn_module
from workbench.task import Task

PLAN = "Inductor's own: the kernels that torch.compile generated for this op, with the configuration it chose"
"""The plan of the candidate, by which it is labelled."""

PROPOSER = "inductor"
"""Who wrote it."""


@dataclass(frozen=True)
class Generated:
    """What ``torch.compile`` made of a reference.

    Attributes:
        code: the text of the module that Inductor generated.
        inputs: what its arguments are, in order: ``input:NAME`` for an argument of the reference, ``state:PATH`` for a model's tensor.
        configs: of each kernel by name: its block sizes, ``num_warps`` and ``num_stages``.
    """

    code: str
    inputs: tuple[str, ...]
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def turn(generated: Generated, task: Task) -> str:
    """The candidate's source.

    Raises:
        UnsupportedError: with the reason, where something in it can't be turned.
    """
    try:
        return turn_module(generated.code, generated.inputs, generated.configs, task)
    except RecursionError:
        raise UnsupportedError("a module nested too deeply") from None


__all__ = ["PLAN", "PROPOSER", "Generated", "UnsupportedError", "turn"]

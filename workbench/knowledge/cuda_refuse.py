"""Which row programs CUDA C++ is not written for."""

from __future__ import annotations

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.row_plan import RowPlan

OPS = {"sum": "Sum", "prod": "Prod", "max": "Max", "min": "Min"}
"""The sources' names of what reductions combine by."""


def refuse(plan: RowPlan) -> None:
    """Plans that `cuda_rows` can't write.

    Raises:
        UnsupportedError: with the reason.
    """
    program = plan.program
    if not plan.contiguous:
        raise UnsupportedError("rows that don't lie along the memory's fastest dimension")
    for value in program.of_kind("reduce", "scan"):
        if value.op not in OPS or (value.kind == "scan" and value.op not in ("sum", "prod")):
            raise UnsupportedError(f"{value.op} along a row in CUDA C++")
    scans = program.of_kind("scan")
    if len(scans) > 1 or (scans and program.of_kind("reduce")):
        raise UnsupportedError("a scan beside another scan or reduction in CUDA C++")
    if program.of_kind("window", "dot", "given"):
        raise UnsupportedError("an op of another family")
    full = [value.atoms for value in program.of_kind("load") if plan.along_row(value)] + [o.atoms for o in plan.full_outputs]
    if any(atoms[-len(plan.reduced) :] != plan.reduced for atoms in full):
        raise UnsupportedError("a tensor that does not have the row's elements side by side")
    if len(plan.reduced_groups) > 1 and program.of_kind("gather"):
        raise UnsupportedError("an element picked from a row of several dimensions")

"""Exponentials of how far elements are below a value of their row, such as its maximum, as CUDA C++ with fewer instructions.

exp(x - peak) takes a subtraction, a multiplication by log2(e) and the special function unit's power of two. With the product of peak and
log2(e) made once a row, one fused multiplication and addition stands in front. That product is rounded: all exponentials of a row are wrong
by the same factor, 2 to the power of the rounding error. Of a moderate value that is no more than an element's own error, and of a sum
divided by a sum it is nothing; of one such as 1e10, which masks are filled with, it is everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.knowledge.cuda_emit import CExpr
from workbench.knowledge.cuda_scope import CudaScope, indented
from workbench.knowledge.program import Value
from workbench.knowledge.row_plan import RowPlan
from workbench.knowledge.scope import Names

MODERATE = "32.0f"
"""Values of a row up to which their products are rounded by 3e-6 at most, a few units in the last place of a float32 exponential."""


def below(plan: RowPlan, inner: CudaScope, targets: Sequence[int], names: Names, loop: Callable[[CudaScope], list[str]]) -> list[str]:
    """The loop over a row that computes `targets`, in both ways: which one a row goes depends on its value. Rows whose value is infinite,
    NaN or large go the plain way.

    Args:
        inner: the scope of one element, in which values of the row are known.
        names: of the scope around the loop.
        loop: writes the loop with the scope of one element that it is given.
    """
    program = plan.program
    shifts: dict[int, CExpr] = {}
    for value in program.needed(targets, stop=set(inner.env)):
        source = program[value.refs[0]] if value.op == "exp" and value.dtype == "float32" and value.refs else None
        if source is not None and source.op == "sub" and len(source.refs) == 2:
            element, row = source.refs
            if plan.along_row(program[element]) and row in inner.env and not plan.along_row(program[row]):
                shifts[value.id] = inner.env[row]
    if not shifts:
        return loop(inner)
    scaled = {text: names.new("scaled") for text in dict.fromkeys(shift.text for shift in shifts.values())}
    fast = inner.inner()

    def special(value: Value) -> CExpr | None:
        if value.id not in shifts:
            return None
        element = program[value.refs[0]].args[0]
        return CExpr(f"exp_below({fast.operand(element).text}, {scaled[shifts[value.id].text]})")

    fast.special = special
    lines = [f"const float {name} = {text} * 1.442695041f;" for text, name in scaled.items()]
    moderate = " && ".join(f"absolute({text}) <= {MODERATE}" for text in scaled)
    both = [f"if ({moderate}) {{", *indented(loop(fast)), "} else {", *indented(loop(inner)), "}"]
    return [*lines, *both]

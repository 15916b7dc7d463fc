"""One elementwise map as a Triton expression: the table that every expert's prologue, body and epilogue is written from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.knowledge.axes import UnsupportedError

ATOM, UNARY, TIMES, PLUS, AND, XOR, OR, COMPARE = 10, 8, 7, 6, 4, 3, 2, 1
"""How tightly Python binds, so that only needed parentheses are written."""


class Expr(NamedTuple):
    """Text of an expression, and how tightly its outermost operator binds."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """Its text as the operand of an operator of that level."""
        return self.text if self.level >= level else f"({self.text})"


TRITON_TYPES = {
    "float16": "tl.float16", "bfloat16": "tl.bfloat16", "float32": "tl.float32", "float64": "tl.float64", "int8": "tl.int8",
    "uint8": "tl.uint8", "int16": "tl.int16", "int32": "tl.int32", "int64": "tl.int64", "bool": "tl.int1",
}  # fmt: skip


def constant(value: Any, dtype: str = "") -> Expr:
    """A Python number as it is written in a computation of `dtype`."""
    if isinstance(value, bool):
        return Expr(str(value))
    if dtype.startswith("float"):
        value = float(value)
    if isinstance(value, float):
        if math.isnan(value):
            return Expr('float("nan")')
        if math.isinf(value):
            return Expr('float("inf")') if value > 0 else Expr('-float("inf")', UNARY)
    text = repr(value)
    return Expr(text, UNARY if text.startswith("-") else ATOM)


def expression(op: str, args: Sequence[Expr], dtype: str) -> Expr:
    """The map `op` of these operands, computed in `dtype`.

    Raises:
        UnsupportedError: no Triton spelling is known.
    """
    if op == "cast":
        return Expr(f"{args[0].at(ATOM)}.to({TRITON_TYPES[dtype]})")
    if op == "mul" and any(arg.text in ("1", "1.0") for arg in args):
        return next((arg for arg in args if arg.text not in ("1", "1.0")), args[0])
    if op == "exp" and dtype == "float32":
        return power_of_e(args[0])
    writer = _WRITERS.get(op)
    if writer is None:
        raise UnsupportedError(f"the elementwise op {op}")
    return writer(*args)


def power_of_e(exponent: Expr) -> Expr:
    """The exponential of a float32, by the GPU's own base-two instruction. ``tl.exp`` spends as much again on
    results below 1e-38, which this flushes to zero.
    """
    return Expr(f"tl.exp2({exponent.at(TIMES)} * {LOG2E})")


LOG2E = "1.4426950408889634"


def helper_of(op: str) -> str:
    """The name of the `HELPERS` entry that this map calls; empty for most."""
    return op if op in HELPERS and op != "multiply" else ""


def _infix(sign: str, level: int) -> Callable[[Expr, Expr], Expr]:
    return lambda left, right: Expr(f"{left.at(level)} {sign} {right.at(level + 1)}", level)


def _compare(sign: str) -> Callable[[Expr, Expr], Expr]:
    return lambda left, right: Expr(f"{left.at(OR)} {sign} {right.at(OR)}", COMPARE)


def _call(function: str) -> Callable[..., Expr]:
    return lambda *args: Expr(f"{function}({', '.join(arg.text for arg in args)})")


_WRITERS: Mapping[str, Callable[..., Expr]] = {
    "add": _infix("+", PLUS), "sub": _infix("-", PLUS), "mul": _infix("*", TIMES), "div": _infix("/", TIMES),
    "bitwise_and": _infix("&", AND), "bitwise_or": _infix("|", OR), "bitwise_xor": _infix("^", XOR),
    "logical_and": _infix("&", AND), "logical_or": _infix("|", OR), "logical_xor": _infix("^", XOR),
    "eq": _compare("=="), "ne": _compare("!="), "lt": _compare("<"), "le": _compare("<="), "gt": _compare(">"), "ge": _compare(">="),
    "inside": lambda x, size: Expr(f"({x.at(OR)} >= 0) & ({x.at(OR)} < {size.at(OR)})", AND),
    "neg": lambda x: Expr(f"-{x.at(UNARY)}", UNARY),
    "logical_not": lambda x: Expr(f"{x.at(COMPARE + 1)} == 0", COMPARE), "bitwise_not": lambda x: Expr(f"~{x.at(UNARY)}", UNARY),
    "isnan": lambda x: Expr(f"{x.at(OR)} != {x.at(OR)}", COMPARE),
    "exp": _call("tl.exp"), "exp2": _call("tl.exp2"), "log": _call("tl.log"), "log2": _call("tl.log2"), "sqrt": _call("tl.sqrt"),
    "rsqrt": _call("tl.rsqrt"), "sin": _call("tl.sin"), "cos": _call("tl.cos"), "erf": _call("tl.erf"), "abs": _call("tl.abs"),
    "floor": _call("tl.floor"), "ceil": _call("tl.ceil"), "sigmoid": _call("tl.sigmoid"), "where": _call("tl.where"),
    "maximum": lambda x, y: Expr(f"tl.maximum({x.text}, {y.text}, propagate_nan=tl.PropagateNan.ALL)"),
    "minimum": lambda x, y: Expr(f"tl.minimum({x.text}, {y.text}, propagate_nan=tl.PropagateNan.ALL)"),
    # Written so that NaN comes through, as it does in torch: a comparison with NaN is false.
    "at_least": lambda x, low: Expr(f"tl.where({x.at(OR)} < {low.at(OR)}, {low.text}, {x.text})"),
    "at_most": lambda x, high: Expr(f"tl.where({x.at(OR)} > {high.at(OR)}, {high.text}, {x.text})"),
    "trunc": lambda x: Expr(f"tl.where({x.at(OR)} < 0, tl.ceil({x.text}), tl.floor({x.text}))"),
    "tanh": _call("tanh"), "log1p": _call("log1p"), "expm1": _call("expm1"),
    **{
        name: _call(f"libdevice.{name}")
        for name in ("pow", "fmod", "tan", "atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "atan2")
    },
}  # fmt: skip

LIBDEVICE_OPS = frozenset(("pow", "fmod", "tan", "atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "atan2"))

HELPERS: Mapping[str, str] = {
    "multiply": """
@triton.jit
def multiply(x, y):
    return x * y
""",
    "tanh": '''
@triton.jit
def tanh(x):
    """Near zero by its series, where 1 - exp(-2x) would lose all digits; elsewhere by one exponential that can't overflow."""
    square = x * x
    series = -5.70498872745e-3 * square + 2.06390887954e-2
    series = series * square - 5.37397155531e-2
    series = series * square + 1.33314422036e-1
    series = series * square - 3.33332819422e-1
    small = series * square * x + x
    decay = tl.exp2(-2.8853900817779268 * tl.abs(x))
    large = (1.0 - decay) / (1.0 + decay)
    return tl.where(tl.abs(x) < 0.625, small, tl.where(x < 0, -large, large))
''',
    "log1p": '''
@triton.jit
def log1p(x):
    """log(1 + x), corrected for the digits of x that 1 + x rounds away (Kahan)."""
    total = 1.0 + x
    lost = total - 1.0
    return tl.where(lost == 0.0, x, tl.log(total) * (x / tl.where(lost == 0.0, 1.0, lost)))
''',
    "expm1": '''
@triton.jit
def expm1(x):
    """exp(x) - 1 without the cancellation near zero (Kahan): the errors of exp and log cancel in the quotient."""
    power = tl.exp(x)
    near = tl.where(power == 1.0, 2.0, power)
    corrected = (power - 1.0) * (x / tl.log(near))
    return tl.where(power == 1.0, x, tl.where((power == 0.0) | (power > 1e30), power - 1.0, corrected))
''',
}
"""Functions that Triton lacks, spelt with those that it has. A candidate carries those that it uses."""

"""How each elementwise ATen op is spelt in the few maps that the emitter can write."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from workbench.graph import Node
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.builder import FLOATS, Builder, Handle

Lowering = Callable[..., Any]


def _direct(op: str) -> Lowering:
    """One map of the same meaning, computed in the result's dtype."""

    def lowering(builder: Builder, node: Node, *args: Any) -> Handle:
        return builder.map(op, *args, dtype=node.dtype)

    return lowering


def _compare(op: str) -> Lowering:
    def lowering(builder: Builder, node: Node, left: Any, right: Any) -> Handle:
        left, right = _common(builder, left, right)
        return builder.map(op, left, right, dtype="bool")

    return lowering


def _common(builder: Builder, left: Any, right: Any) -> tuple[Any, Any]:
    """Operands of a comparison in one kind of dtype: a float on either side makes both floats."""
    floats = [arg for arg in (left, right) if isinstance(arg, float) or (isinstance(arg, Handle) and arg.dtype in FLOATS)]
    if not floats:
        return left, right
    dtype = "float64" if any(isinstance(arg, Handle) and arg.dtype == "float64" for arg in floats) else "float32"
    convert = [builder.cast(arg, dtype) if isinstance(arg, Handle) and arg.dtype not in FLOATS else arg for arg in (left, right)]
    return convert[0], convert[1]


def _add(builder: Builder, node: Node, x: Any, y: Any, alpha: Any = 1) -> Handle:
    scaled = y if alpha == 1 else builder.map("mul", y, alpha, dtype=node.dtype) if isinstance(y, Handle) else y * alpha
    return builder.map("add", x, scaled, dtype=node.dtype)


def _sub(builder: Builder, node: Node, x: Any, y: Any, alpha: Any = 1) -> Handle:
    scaled = y if alpha == 1 else builder.map("mul", y, alpha, dtype=node.dtype) if isinstance(y, Handle) else y * alpha
    return builder.map("sub", x, scaled, dtype=node.dtype)


def _rsub(builder: Builder, node: Node, x: Any, y: Any, alpha: Any = 1) -> Handle:
    scaled = x if alpha == 1 else builder.map("mul", x, alpha, dtype=node.dtype)
    return builder.map("sub", y, scaled, dtype=node.dtype)


def _div(builder: Builder, node: Node, x: Any, y: Any, rounding_mode: str | None = None) -> Handle:
    quotient = builder.map("div", x, y, dtype=node.dtype)
    if rounding_mode is None:
        return quotient
    if node.dtype not in FLOATS:
        raise UnsupportedError("integer division")
    return builder.map("floor" if rounding_mode == "floor" else "trunc", quotient, dtype=node.dtype)


def _pow(builder: Builder, node: Node, x: Any, exponent: Any) -> Handle:
    def times(left: Any, right: Any) -> Handle:
        return builder.map("mul", left, right, dtype=node.dtype)

    if isinstance(exponent, (int, float)) and isinstance(x, Handle):
        if exponent == 0:
            return builder.full(1.0 if node.dtype in FLOATS else 1, node.shape, node.dtype)
        if abs(exponent) == 0.5 and node.dtype in FLOATS:
            return builder.map("sqrt" if exponent > 0 else "rsqrt", x, dtype=node.dtype)
        if exponent == int(exponent) and abs(exponent) <= 16 and (exponent > 0 or node.dtype in FLOATS):
            result, square, left = None, x, abs(int(exponent))
            while left:
                if left & 1:
                    result = square if result is None else times(result, square)
                left >>= 1
                square = times(square, square) if left else square
            assert result is not None
            return builder.map("div", 1.0, result, dtype=node.dtype) if exponent < 0 else result
    return builder.map("pow", x, exponent, dtype=node.dtype)


def _gelu(builder: Builder, node: Node, x: Handle, approximate: str = "none") -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    if approximate == "none":
        return op("mul", op("mul", x, 0.5), op("add", 1.0, op("erf", op("mul", x, math.sqrt(0.5)))))
    # (1 + tanh(u)) / 2 is sigmoid(2u): one exponential, and nothing cancels.
    inner = op("mul", op("mul", x, 2.0 * math.sqrt(2.0 / math.pi)), op("add", 1.0, op("mul", 0.044715, op("mul", x, x))))
    return op("mul", x, op("sigmoid", inner))


def _silu(builder: Builder, node: Node, x: Handle) -> Handle:
    return builder.map("mul", x, builder.map("sigmoid", x, dtype=node.dtype), dtype=node.dtype)


def _clamp(builder: Builder, node: Node, x: Handle, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> Handle:
    low, high = min if low is None else low, max if high is None else high
    result = x
    for op, bound in (("at_least", low), ("at_most", high)):
        if bound is not None:
            result = builder.map(op, result, bound, dtype=node.dtype)
    return result


def _threshold(builder: Builder, node: Node, x: Handle, threshold: Any, value: Any) -> Handle:
    return _where(builder, node, builder.map("le", x, threshold, dtype="bool"), value, x)


def _relu6(builder: Builder, node: Node, x: Handle) -> Handle:
    return _clamp(builder, node, x, 0, 6)


def _hardtanh(builder: Builder, node: Node, x: Handle, low: float = -1.0, high: float = 1.0) -> Handle:
    return _clamp(builder, node, x, low, high)


def _relu(builder: Builder, node: Node, x: Handle) -> Handle:
    return builder.map("at_least", x, 0, dtype=node.dtype)


def _leaky_relu(builder: Builder, node: Node, x: Handle, slope: float = 0.01) -> Handle:
    positive = builder.map("gt", x, 0.0, dtype="bool")
    return builder.map("where", positive, x, builder.map("mul", x, slope, dtype=node.dtype), dtype=node.dtype)


def _elu(builder: Builder, node: Node, x: Handle, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    scaled = x if input_scale == 1 else op("mul", x, input_scale)
    negative = op("mul", op("expm1", scaled), alpha * scale)
    positive = x if scale == 1 else op("mul", x, scale)
    return builder.map("where", builder.map("gt", x, 0.0, dtype="bool"), positive, negative, dtype=node.dtype)


def _softplus(builder: Builder, node: Node, x: Handle, beta: float = 1.0, threshold: float = 20.0) -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    scaled = x if beta == 1 else op("mul", x, beta)
    soft = op("log1p", op("exp", scaled))
    soft = soft if beta == 1 else op("div", soft, beta)
    return builder.map("where", builder.map("gt", scaled, threshold, dtype="bool"), x, soft, dtype=node.dtype)


def _mish(builder: Builder, node: Node, x: Handle) -> Handle:
    # tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2) with e = exp(x): no logarithm. Beyond 20 mish(x) is x.
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    power = op("exp", op("at_most", x, 20.0))
    top = op("mul", power, op("add", power, 2.0))
    soft = op("mul", x, op("div", top, op("add", top, 2.0)))
    return builder.map("where", builder.map("gt", x, 20.0, dtype="bool"), x, soft, dtype=node.dtype)


def _log_sigmoid(builder: Builder, node: Node, x: Handle) -> tuple[Handle, None]:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    return op("sub", op("at_most", x, 0.0), op("log1p", op("exp", op("neg", op("abs", x))))), None


def _hardsigmoid(builder: Builder, node: Node, x: Handle) -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    return op("mul", op("at_most", op("at_least", op("add", x, 3.0), 0.0), 6.0), 1.0 / 6.0)


def _hardswish(builder: Builder, node: Node, x: Handle) -> Handle:
    return builder.map("mul", x, _hardsigmoid(builder, node, x), dtype=node.dtype)


def _where(builder: Builder, node: Node, condition: Handle, x: Any, y: Any) -> Handle:
    sides = [builder.cast(side, node.dtype) if isinstance(side, Handle) and side.dtype != node.dtype else side for side in (x, y)]
    return builder.map("where", condition, *sides, dtype=node.dtype)


def _masked_fill(builder: Builder, node: Node, x: Handle, mask: Handle, value: Any) -> Handle:
    return _where(builder, node, mask, value, x)


def _lerp(builder: Builder, node: Node, x: Handle, y: Handle, weight: Any) -> Handle:
    difference = builder.map("sub", y, x, dtype=node.dtype)
    return builder.map("add", x, builder.map("mul", weight, difference, dtype=node.dtype), dtype=node.dtype)


def _addcmul(builder: Builder, node: Node, x: Handle, y: Handle, z: Handle, value: Any = 1) -> Handle:
    product = builder.map("mul", y, z, dtype=node.dtype)
    return _add(builder, node, x, product, value)


def _addcdiv(builder: Builder, node: Node, x: Handle, y: Handle, z: Handle, value: Any = 1) -> Handle:
    return _add(builder, node, x, builder.map("div", y, z, dtype=node.dtype), value)


def _logit(op: str) -> Lowering:
    """Logical ops: operands are taken as true or false first."""

    def lowering(builder: Builder, node: Node, *args: Handle) -> Handle:
        return builder.map(op, *(builder.cast(arg, "bool") for arg in args), dtype="bool")

    return lowering


def _bitwise_not(builder: Builder, node: Node, x: Handle) -> Handle:
    return builder.map("logical_not" if x.dtype == "bool" else "bitwise_not", x, dtype=node.dtype)


def _square(builder: Builder, node: Node, x: Handle) -> Handle:
    return builder.map("mul", x, x, dtype=node.dtype)


def _reciprocal(builder: Builder, node: Node, x: Handle) -> Handle:
    return builder.map("div", 1.0, x, dtype=node.dtype)


def _xlogy(builder: Builder, node: Node, x: Handle, y: Any) -> Handle:
    product = builder.map("mul", x, builder.map("log", y, dtype=node.dtype), dtype=node.dtype)
    return builder.map("where", builder.map("eq", x, 0.0, dtype="bool"), 0.0, product, dtype=node.dtype)


def _sign(builder: Builder, node: Node, x: Handle) -> Handle:
    negative = builder.map("where", builder.map("lt", x, 0, dtype="bool"), -1, 0, dtype=node.dtype)
    return builder.map("where", builder.map("gt", x, 0, dtype="bool"), 1, negative, dtype=node.dtype)


def _glu(builder: Builder, node: Node, x: Handle, dim: int = -1) -> Handle:
    raise UnsupportedError("glu, which cuts a dimension in halves")


def _triangle(op: str) -> Lowering:
    """One triangle of a matrix, the rest zero."""

    def lowering(builder: Builder, node: Node, x: Handle, diagonal: int = 0) -> Handle:
        if len(x.dims) < 2 or not x.dims[-1] or not x.dims[-2]:
            raise UnsupportedError("a triangle of a vector")
        row = builder.index(x.dims[-2])
        apart = builder.map("sub", builder.index(x.dims[-1]), Handle(row.value, (*row.dims, ()), row.dtype), dtype="int64")
        inside = builder.map(op, apart, diagonal, dtype="bool")
        return builder.map("where", inside, x, 0.0 if node.dtype in FLOATS else 0, dtype=node.dtype)

    return lowering


POINTWISE: Mapping[str, Lowering] = {
    **{
        op: _direct(op)
        for op in (
            "mul", "exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "rsqrt", "sin", "cos", "erf", "abs", "neg", "sigmoid", "tanh",
            "maximum", "minimum", "floor", "ceil", "trunc", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "tan", "atan",
            "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "atan2",
        )
    },
    **{op: _compare(op) for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{op: _logit(op) for op in ("logical_not", "logical_and", "logical_or", "logical_xor")},
    "fmax": _direct("maximum"), "fmin": _direct("minimum"), "max_binary": _direct("maximum"), "special_erf": _direct("erf"),
    "add": _add, "sub": _sub, "rsub": _rsub, "div": _div, "true_divide": _div, "pow": _pow, "gelu": _gelu, "silu": _silu, "relu": _relu,
    "clamp": _clamp, "clamp_min": _clamp, "clamp_max": lambda builder, node, x, high: _clamp(builder, node, x, None, high),
    "hardtanh": _hardtanh, "relu6": _relu6, "threshold": _threshold, "leaky_relu": _leaky_relu, "elu": _elu, "softplus": _softplus,
    "mish": _mish, "log_sigmoid_forward": _log_sigmoid, "hardsigmoid": _hardsigmoid, "hardswish": _hardswish, "where": _where,
    "masked_fill": _masked_fill, "lerp": _lerp, "addcmul": _addcmul, "addcdiv": _addcdiv, "bitwise_not": _bitwise_not, "square": _square,
    "reciprocal": _reciprocal, "xlogy": _xlogy, "sign": _sign, "sgn": _sign, "glu": _glu,
    "tril": _triangle("le"), "triu": _triangle("ge"),
    "isnan": lambda builder, node, x: builder.map("isnan", x, dtype="bool"),
}  # fmt: skip

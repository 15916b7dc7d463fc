"""How attention is spelt: a product, its softmax, and a product with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from workbench.graph import Node
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.builder import Builder, Handle

Lowering = Callable[..., Any]


def _attention(
    builder: Builder, node: Node, query: Handle, key: Handle, value: Handle, mask: Handle | None = None, dropout: float = 0.0,
    causal: bool = False, scale: float | None = None, grouped: bool = False, *, enable_gqa: bool = False,
) -> Handle:  # fmt: skip
    if dropout:
        raise UnsupportedError("attention with dropout")
    scale = 1 / math.sqrt(builder.axes.size(query.dims[-1])) if scale is None else scale

    def op(name: str, *args: Any, dtype: str = node.dtype) -> Handle:
        return builder.map(name, *args, dtype=dtype)

    heads, rows = query.dims[:-2], query.dims[-2]
    folded = query
    if (grouped or enable_gqa) and heads and key.dims[-3] != heads[-1]:
        # Queries of the heads that share a key are further rows of it.
        shared = builder.axes.size(key.dims[-3])
        outer, inner = builder.axes.regroup((heads[-1],), (shared, builder.axes.size(heads[-1]) // shared))
        builder.axes.fixed.update(builder.axes.resolve(inner))
        folded = Handle(query.value, (*heads[:-1], outer, (*inner, *rows), query.dims[-1]), query.dtype)
    turned = Handle(key.value, (*key.dims[:-2], key.dims[-1], key.dims[-2]), key.dtype)
    score = builder.dot(folded, turned, node.dtype)
    columns = score.dims[-1]
    score = Handle(score.value, (*heads, rows, columns), node.dtype)
    score = score if scale == 1 else op("mul", score, scale)
    if causal:
        place = builder.index(rows)
        apart = op("sub", builder.index(columns), Handle(place.value, (*place.dims, ()), place.dtype), dtype="int64")
        score = op("where", op("le", apart, 0, dtype="bool"), score, -math.inf)
    if mask is not None:
        score = op("where", mask, score, -math.inf) if mask.dtype == "bool" else op("add", score, mask)
    power = op("exp", op("sub", score, builder.reduce("max", score, (-1,), True)))
    weight = op("mul", power, op("div", 1.0, builder.reduce("sum", power, (-1,), True)))
    weight = Handle(weight.value, (*folded.dims[:-1], columns), node.dtype)
    result = builder.dot(weight, value, node.dtype)
    return Handle(result.value, (*heads, rows, result.dims[-1]), node.dtype)


ATTENTION: Mapping[str, Lowering] = {
    "scaled_dot_product_attention": _attention,
    "attention": _attention,
    "_scaled_dot_product_attention_math": lambda *args, **kwargs: (_attention(*args, **kwargs), None),
}

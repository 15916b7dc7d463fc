"""How fast an op could ever be on a target, and what it costs when each of its ATen calls is a kernel of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.explain.constants import CONSTANTS
from workbench.graph import Node
from workbench.target import Target
from workbench.task import ITEM_BYTES, Task, Work

VIEWS = frozenset(
    {
        "view", "reshape", "_unsafe_view", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "slice", "select", "detach",
        "alias", "as_strided", "unbind", "split", "split_with_sizes", "chunk", "getitem", "narrow", "diagonal", "unfold", "expand_as",
        "view_as", "sym_size", "lift_fresh_copy", "empty", "empty_like",
    }
)  # fmt: skip
"""ATen calls that move nothing."""

POINTWISE = frozenset(
    {
        "add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "rsqrt", "pow", "relu", "gelu", "silu", "sigmoid", "tanh", "erf", "abs",
        "clamp", "where", "maximum", "minimum", "_to_copy", "clone", "copy", "leaky_relu", "hardtanh", "softplus", "elu", "reciprocal",
    }
)  # fmt: skip
"""Calls that stream well where no operand is repeated."""

_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "convolution", "conv1d", "conv2d", "conv3d", "einsum"})


def floor_us(work: Work, target: Target) -> float:
    """The speed of light, in µs: the least bytes at the bandwidth of a copy, or the least FLOPs at the peak of their type.

    Products in float32 may be made of three in TF32, which is as exact and faster where there are tensor cores.

    >>> from workbench.target import get_target
    >>> round(floor_us(Work(bytes=134217728, flops=0), get_target("cuda:90")), 1)
    31.2
    """
    products = target.peak(work.matmul_dtype or "float32")
    if work.matmul_dtype == "float32":
        products = max(products, target.peak("tf32") / 3)
    compute = work.matmul_flops / products + (work.flops - work.matmul_flops) / target.peak("float32")
    return 1e6 * max(work.bytes / target.bandwidth, compute)


@dataclass(frozen=True)
class EagerCall:
    """One ATen call as a kernel of its own: modelled µs, bytes moved and FLOPs of its product."""

    op: str
    us: float
    bytes: int
    flops: float = 0.0


def eager_us(task: Task, target: Target) -> float | None:
    """Modelled time in µs of the reference as PyTorch runs it, call by call; None where the Task has no graph."""
    return float(sum(call.us for call in eager_calls(task, target))) if task.graph.nodes else None


def eager_calls(task: Task, target: Target) -> tuple[EagerCall, ...]:
    """The reference's calls that move something, in order, each with its modelled time."""
    sizes: dict[str, int] = {spec.name: spec.nbytes for spec in task.inputs}
    shapes: dict[str, tuple[int, ...]] = {spec.name: spec.shape for spec in task.inputs}
    products = [node for node in task.graph.nodes if base(node) in _PRODUCTS]
    calls = []
    for node in task.graph.nodes:
        shapes[node.name] = node.shape
        if base(node) in VIEWS:
            # A view is read where its source is, but never more of it than it shows.
            source = min((sizes[name] for name in node.refs() if name in sizes), default=0)
            sizes[node.name] = min(source, _bytes(node)) if source else _bytes(node)
            continue
        sizes[node.name] = _bytes(node)
        moved = sum(sizes.get(name, 0) for name in dict.fromkeys(node.refs())) + _bytes(node)
        plain = base(node) in POINTWISE and all(shapes.get(name, node.shape) == node.shape for name in node.refs())
        seconds = moved / (target.bandwidth * (CONSTANTS.stream_efficiency if plain else CONSTANTS.reduce_efficiency))
        flops = 0.0
        if node in products:
            flops = _product_flops(node, shapes, task.work, len(products))
            coarse = task.convolution_tf32 if "conv" in base(node) else task.matmul_precision != "highest"
            dtype = "tf32" if node.dtype == "float32" and coarse else node.dtype
            seconds = max(seconds, flops / (target.peak(dtype) * CONSTANTS.library_matmul))
        calls.append(EagerCall(base(node), 1e6 * seconds + target.latency_us + target.launch_us, moved, flops))
    return tuple(calls)


def base(node: Node) -> str:
    """``mul`` of ``aten.mul.Tensor``."""
    return node.op.split(".")[1] if node.op.startswith("aten.") else node.op


def _bytes(node: Node) -> int:
    return math.prod(node.shape) * ITEM_BYTES.get(node.dtype, 4)


def _product_flops(node: Node, shapes: Mapping[str, tuple[int, ...]], work: Work, products: int) -> float:
    operands = [shape for name in _operands(node) if len(shape := shapes.get(name, ())) >= 2]
    if base(node) in ("mm", "bmm", "addmm", "baddbmm", "matmul", "linear") and operands:
        return 2.0 * math.prod(node.shape) * operands[0 if "add" not in base(node) or len(operands) < 3 else 1][-1]
    return work.matmul_flops / products


def _operands(node: Node) -> tuple[str, ...]:
    names: list[str] = []
    for arg in node.args:
        if isinstance(arg, Mapping) and set(arg) == {"ref"}:
            names.append(_name(arg))
    return tuple(names)


def _name(ref: Mapping[str, Any]) -> str:
    return str(ref["ref"])

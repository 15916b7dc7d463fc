"""The least work that any implementation of a traced op must do.

Bytes: every input that the graph reads, once, and every output, once. Of an input that is only gathered or sliced from, the elements taken.

FLOPs: products by `torch.utils.flop_counter`; else one an element of the result of a pointwise op (`TRANSCENDENTAL` for exp and its
like), one an element of the operand of a reduction, and for fused ops of ATen what `PER_ELEMENT` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from workbench.capture.specs import dtype_name
from workbench.capture.tracing import Trace
from workbench.task import ITEM_BYTES, InputSpec, OutputSpec, Work

TRANSCENDENTAL = 8
"""FLOPs that one exp, log, tanh, … counts as: a polynomial of usual length."""

TRANSCENDENTALS = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2",
    "erf", "erfc", "erfinv", "sigmoid", "logit", "log_sigmoid_forward", "softplus", "gelu", "silu", "mish", "elu", "pow", "lgamma",
})  # fmt: skip

PER_ELEMENT = {
    "_softmax": 12, "_log_softmax": 12, "native_layer_norm": 8, "native_group_norm": 8, "native_batch_norm": 6,
    "_native_batch_norm_legit": 6, "_native_batch_norm_legit_no_training": 4, "_fused_rms_norm": 5, "logsumexp": 11, "var": 3,
    "var_mean": 3, "std": 3, "std_mean": 3, "norm": 2, "linalg_vector_norm": 2, "mean": 1, "cumsum": 1, "cumprod": 1,
    "logcumsumexp": 17, "_cdist_forward": 3,
}  # fmt: skip
"""FLOPs for each element of the first operand."""

REDUCTIONS = frozenset({
    "sum", "prod", "amax", "amin", "aminmax", "max", "min", "argmax", "argmin", "any", "all", "nansum", "median", "avg_pool2d",
    "max_pool2d_with_indices", "_adaptive_avg_pool2d", "mse_loss", "smooth_l1_loss", "nll_loss_forward", "topk", "sort", "cummax",
    "cummin", "scatter_add", "index_add",
})  # fmt: skip

PARTIAL = frozenset({
    "embedding", "index_select", "gather", "index", "take", "slice", "select", "narrow", "_embedding_bag",
})  # fmt: skip
"""Ops that read no more of their first operand than they return."""

MATMUL_EXTRA = frozenset({"mv", "dot", "vdot", "addmv", "addr", "outer"})


def count_work(trace: Trace, inputs: Sequence[InputSpec], outputs: Sequence[OutputSpec], free: Sequence[torch.Tensor] = ()) -> Work:
    """Minimal bytes and FLOPs; without a graph, all inputs and outputs and no FLOPs.

    Args:
        free: a Model's parameters, which are read besides the inputs.
    """
    written = sum(output.nbytes for output in outputs)
    if not trace.graph.nodes:
        read = sum(spec.nbytes for spec in inputs) + sum(t.numel() * t.element_size() for t in free)
        return Work(2 * written if trace.graph.outputs else read + written, 0)
    flops = matmul = 0
    dtype, largest = "", 0
    for node in trace.nodes:
        products = matmul_flops(node)
        if products:
            matmul += products
            if products > largest:
                largest, dtype = products, _operand_dtype(node)
        flops += products or _other_flops(node)
    return Work(_bytes_read(trace, inputs) + written, flops, matmul, dtype)


def matmul_flops(node: torch.fx.Node) -> int:
    """FLOPs of a matrix product, convolution or attention; 0 for any other call."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return 0
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda item: item.meta.get("val"))
    if target._schema.name == "workbench::attention":
        query, key, value, causal = args[0], args[1], args[2], args[5] if len(args) > 5 else False
        pairs = math.prod(query.shape[:-1]) * key.shape[-2]
        return int(pairs * 2 * (query.shape[-1] + value.shape[-1]) // (2 if causal else 1))
    if target.overloadpacket not in flop_registry:
        return 0
    try:
        return int(flop_registry[target.overloadpacket](*args, **kwargs, out_val=node.meta.get("val")))
    except Exception:  # an overload that the registry's formula doesn't take
        return 0


def _other_flops(node: torch.fx.Node) -> int:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return 0
    name = target._schema.name.split("::")[1]
    operand = next((arg.meta.get("val") for arg in node.args if isinstance(arg, torch.fx.Node)), None)
    size = operand.numel() if isinstance(operand, torch.Tensor) else 0
    value = node.meta.get("val")
    made = value.numel() if isinstance(value, torch.Tensor) else 0
    if name in PER_ELEMENT:
        return int(PER_ELEMENT[name] * size)
    if name in MATMUL_EXTRA:
        return 2 * max(size, made)
    if torch.Tag.pointwise in target.tags or name in TRANSCENDENTALS:
        if name == "pow" and len(node.args) > 1 and node.args[1] in (2, 3):
            return int(made * (int(node.args[1]) - 1))
        return made * (TRANSCENDENTAL if name in TRANSCENDENTALS else 0 if name in ("clone", "copy", "_to_copy", "fill") else 1)
    return size if name in REDUCTIONS else 0


def _bytes_read(trace: Trace, inputs: Sequence[InputSpec]) -> int:
    sizes = {spec.name: spec.nbytes for spec in inputs if spec.is_tensor}
    items = {spec.name: ITEM_BYTES[spec.dtype] for spec in inputs if spec.is_tensor}
    for node in trace.graph.nodes:
        if node.op == "get_attr" and node.dtype in ITEM_BYTES:
            items[node.name] = ITEM_BYTES[node.dtype]
            sizes[node.name] = math.prod(node.shape) * items[node.name]
    read: dict[str, int] = {}
    for node in trace.graph.nodes:
        name = node.op.split(".")[1] if "." in node.op else node.op
        for place, ref in enumerate(node.refs()):
            if ref not in sizes:
                continue
            taken = math.prod(node.shape) * items[ref] if place == 0 and name in PARTIAL else sizes[ref]
            read[ref] = min(sizes[ref], read.get(ref, 0) + taken)
    for name in trace.graph.outputs:
        if name in sizes:
            read[name] = sizes[name]
    return sum(read.values())


def _operand_dtype(node: torch.fx.Node) -> str:
    values: list[Any] = [arg.meta.get("val") for arg in node.args if isinstance(arg, torch.fx.Node)]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return dtype_name(tensors[-1].dtype) if tensors else ""

"""What kind of op a task is, read from its graph: the structured half of retrieval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.graph import Graph, Node
from workbench.task import Task


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KINDS: Mapping[str, frozenset[str]] = {
    kind: _words(names)
    for kind, names in {
        "matmul": "mm addmm bmm baddbmm matmul linear dot mv addmv _scaled_mm _int_mm",
        "convolution": "convolution conv1d conv2d conv3d _convolution",
        "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_attention_math",
        "softmax": "softmax _softmax log_softmax _log_softmax logsumexp",
        "normalization": "layer_norm native_layer_norm group_norm native_group_norm batch_norm native_batch_norm rms_norm _fused_rms_norm "
        "_native_batch_norm_legit _native_batch_norm_legit_no_training instance_norm",
        "reduction": "sum mean amax amin max min prod var var_mean std std_mean norm linalg_vector_norm any all argmax argmin "
        "count_nonzero",
        "scan": "cumsum cumprod cummax cummin logcumsumexp",
        "sort": "sort topk kthvalue argsort median",
        "gather": "index gather embedding index_select take take_along_dim",
        "scatter": "scatter scatter_add scatter_reduce index_put index_add index_copy",
        "pooling": "max_pool2d max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d "
        "_adaptive_avg_pool3d adaptive_avg_pool1d adaptive_max_pool2d",
        "loss": "nll_loss_forward nll_loss cross_entropy_loss mse_loss smooth_l1_loss huber_loss binary_cross_entropy "
        "binary_cross_entropy_with_logits kl_div",
        "transcendental": "exp exp2 expm1 log log2 log1p tanh erf gelu silu sigmoid softplus mish sin cos tan elu log_sigmoid_forward",
        "layout": "permute transpose t clone cat stack slice expand repeat flip roll constant_pad_nd upsample_nearest2d pixel_shuffle",
    }.items()
}
_REDUCING = _KINDS["reduction"] | _KINDS["softmax"] | _KINDS["scan"] | _KINDS["sort"]
_VIEWS = _words("view reshape _unsafe_view unsqueeze squeeze getitem detach alias _to_copy to contiguous lift_fresh_copy")
_FEW_PROGRAMS = 132
"""Rows that don't give every multiprocessor of a large card one program."""


@dataclass(frozen=True)
class Features:
    """An op in short.

    Attributes:
        kinds: such as matmul, softmax, normalization, reduction, transcendental, pointwise; sorted.
        axes: where it reduces: ``last``, ``inner`` (any other single axis), ``several``, ``all``.
        shapes: ``short rows`` (≤ 1024 elements reduced), ``long rows`` (> 16384), ``few rows`` (less than one a multiprocessor),
            ``small`` (less than 4 MB of least traffic).
        dtypes: of the tensors that go in.
        ops: base names of its ATen calls, without views and repeats.
    """

    kinds: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()


def features(task: Task) -> Features:
    """The features of `task`. A task without a graph has only what its inputs show."""
    graph = task.graph
    named = zip(graph.nodes, graph.ops(), strict=True)
    ops = [f"{name}imum" if _is_binary(node) else name for node, name in named if name not in _VIEWS]
    kinds = {kind for kind, names in _KINDS.items() for name in ops if _plain(name) in names}
    if ops and not kinds - {"transcendental", "layout"}:
        kinds.add("pointwise")
    seen = set(map(_plain, ops))
    if seen & {"rsqrt", "sqrt"} and seen & {"mean", "var", "var_mean", "sum", "linalg_vector_norm"}:
        kinds.add("normalization")
    if {"exp", "sum"} <= seen and seen & {"amax", "max"}:
        kinds.add("softmax")
    axes, shapes = set(), set()
    for extent, rows, axis in _reductions(task, graph):
        axes.add(axis)
        shapes |= {"short rows"} if extent <= 1024 else {"long rows"} if extent > 16384 else set()
        shapes |= {"few rows"} if rows < _FEW_PROGRAMS else set()
    if 0 < task.work.bytes < 4_000_000:
        shapes.add("small")
    return Features(
        kinds=tuple(sorted(kinds)),
        axes=tuple(sorted(axes)),
        shapes=tuple(sorted(shapes)),
        dtypes=tuple(sorted({spec.dtype for spec in task.inputs if spec.is_tensor})),
        ops=tuple(dict.fromkeys(ops)),
    )


def _plain(op: str) -> str:
    """Without the underscore of an in-place overload."""
    return op if op.startswith("_") else op.rstrip("_")


def _reductions(task: Task, graph: Graph) -> Iterator[tuple[int, int, str]]:
    """(elements reduced to one, results, axis) of each reduction."""
    shapes: dict[str, tuple[int, ...]] = {spec.name: spec.shape for spec in task.inputs}
    for node in graph.nodes:
        shapes[node.name] = node.shape
        source = next(node.refs(), None)
        shape = shapes.get(source or "", ())
        base = _plain(node.op.split(".")[1] if node.op.startswith("aten.") else node.op)
        if not shape:
            continue
        if base == "native_layer_norm" or base in ("layer_norm", "rms_norm", "_fused_rms_norm"):
            normalized = node.args[1] if len(node.args) > 1 and isinstance(node.args[1], tuple) else shape[-1:]
            extent = math.prod(int(size) for size in normalized)
            yield extent, math.prod(shape) // max(1, extent), "last"
        elif base in _REDUCING and not _is_binary(node):
            dims = _dims(node, len(shape))
            extent = math.prod(shape[dim] for dim in dims)
            axis = "all" if len(dims) == len(shape) else "several" if len(dims) > 1 else "last" if dims[0] == len(shape) - 1 else "inner"
            yield extent, math.prod(shape) // max(1, extent), axis


def _is_binary(node: Node) -> bool:
    """`max` and `min` of two tensors reduce nothing."""
    return node.op in ("aten.max.other", "aten.min.other")


def _dims(node: Node, rank: int) -> tuple[int, ...]:
    given = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    base = node.op.split(".")[1] if node.op.startswith("aten.") else node.op
    if (
        base in ("linalg_vector_norm", "norm", "topk", "kthvalue") and "dim" not in node.kwargs
    ):  # their second argument is an order or count
        given = node.args[2] if len(node.args) > 2 else None if base in ("linalg_vector_norm", "norm") else -1
    if base in ("sort", "argsort") and given is None:
        given = -1
    dims = given if isinstance(given, tuple) else (given,) if isinstance(given, int) and not isinstance(given, bool) else ()
    found = tuple(sorted({int(dim) % rank for dim in dims if isinstance(dim, int)}))
    return found or tuple(range(rank))

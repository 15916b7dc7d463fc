"""How pooling and convolutions are spelt: windows that slide over an argument, or a matrix product where the window is one element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.graph import Node
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.builder import Builder, Handle
from workbench.knowledge.program import Window

Lowering = Callable[..., Any]
Sizes = int | Sequence[int]

MOST_TAPS = 512
"""Windows with more elements than this are not unrolled."""


def _max_pool(
    builder: Builder, node: Node, x: Handle, kernel: Sizes, stride: Sizes = (), padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> tuple[Handle, None]:  # fmt: skip
    return _pool(builder, node, "max", x, kernel, stride, padding, dilation, ceil_mode, 0), None


def _avg_pool(
    builder: Builder, node: Node, x: Handle, kernel: Sizes, stride: Sizes = (), padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: int | None = None,
) -> Handle:  # fmt: skip
    size = math.prod(kernel) if not isinstance(kernel, int) else kernel ** _rank(node)
    divisor = divisor or (size if count_include_pad else 0)
    return _pool(builder, node, "mean", x, kernel, stride, padding, 1, ceil_mode, divisor)


def _pool(
    builder: Builder, node: Node, op: str, x: Handle, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool,
    divisor: int,
) -> Handle:  # fmt: skip
    rank = _rank(node)
    strides = kernel if stride in ((), []) else stride
    window = Window(_each(kernel, rank), _each(strides, rank), _each(padding, rank), _each(dilation, rank), divisor)
    return _slide(builder, node, op, x, window, ceil_mode)


def _slide(
    builder: Builder, node: Node, op: str, x: Handle, window: Window, ceil_mode: bool = False, weight: Handle | None = None
) -> Handle:
    """The window's value, dimensions of one element along which nothing slides left out."""
    rank = len(window.kernel)
    sizes = [builder.axes.size(dim) for dim in x.dims[-rank:]]
    flat = [size == 1 and kernel == 1 and pad == 0 for size, kernel, pad in zip(sizes, window.kernel, window.padding, strict=True)]
    kept = [place for place in range(rank) if not flat[place]]
    if not kept or math.prod(window.kernel) > MOST_TAPS:
        raise UnsupportedError(f"{node.op} over a window of {math.prod(window.kernel)} elements")

    def those(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sizes[place] for place in kept)

    narrow = Window(those(window.kernel), those(window.stride), those(window.padding), those(window.dilation), window.divisor)
    out = [
        (sizes[place] + 2 * window.padding[place] - window.dilation[place] * (window.kernel[place] - 1) - 1) // window.stride[place] + 1
        for place in kept
    ]
    shape = node.shape[-rank:]
    if tuple(out) != tuple(shape[place] for place in kept):
        raise UnsupportedError(f"{node.op} with ceil_mode={ceil_mode}, whose last windows hang over the edge")
    lead = x.dims[:-rank]
    source = Handle(x.value, (*lead, *(x.dims[len(lead) + place] for place in kept)), x.dtype)
    slid = builder.window(op, source, narrow, out, node.dtype, weight)
    space = iter(slid.dims[len(lead) :])
    return Handle(slid.value, (*lead, *(() if flat[place] else next(space) for place in range(rank))), node.dtype)


def _convolution(
    builder: Builder, node: Node, x: Handle, weight: Handle, bias: Handle | None, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, output_padding: Sizes, groups: int,
) -> Handle:  # fmt: skip
    size = [builder.axes.size(dim) for dim in weight.dims]
    rank = len(size) - 2
    window = Window(tuple(size[2:]), _each(stride, rank), _each(padding, rank), _each(dilation, rank))
    if len(x.dims) != rank + 2:
        raise UnsupportedError("a convolution without a batch")
    if transposed:
        result = _general(builder, node, "transposed", x, weight, window, groups)
    elif groups == 1 and set(window.kernel) == {1} and set(window.stride) == {1} and set(window.padding) == {0}:
        result = _one_by_one(builder, node, x, weight)
    elif groups > 1 and groups == size[0] and size[1] == 1:
        builder.axes.unify(x.dims[1], weight.dims[0])
        builder.axes.fixed.update(atom for dim in weight.dims[2:] for atom in builder.axes.resolve(dim))  # it is unrolled
        result = _slide(builder, node, "weighted", x, window, weight=weight)
    else:
        result = _general(builder, node, "forward", x, weight, window, groups)
    if bias is None:
        return result
    per_channel = Handle(bias.value, ((), *bias.dims, *((),) * rank), bias.dtype)
    return builder.map("add", result, per_channel, dtype=node.dtype)


def _general(builder: Builder, node: Node, op: str, x: Handle, weight: Handle, window: Window, groups: int) -> Handle:
    rank = len(window.kernel)
    if any(not dim for dim in x.dims[-rank:]) or 1 in node.shape[1:]:
        raise UnsupportedError("a convolution with a dimension of one element")
    if math.prod(window.kernel) > MOST_TAPS:
        raise UnsupportedError(f"a convolution by {math.prod(window.kernel)} elements")
    return builder.convolve(op, x, weight, window, groups, node.shape[2:], node.dtype)


def _one_by_one(builder: Builder, node: Node, x: Handle, weight: Handle) -> Handle:
    """Weights times the image of each sample, its positions in a row."""
    batch, channels, *space = x.dims
    positions = tuple(atom for dim in space for atom in dim)
    left, right = Handle(weight.value, weight.dims[:2], weight.dtype), Handle(x.value, (channels, positions), x.dtype)
    product = builder.dot(left, right, node.dtype, (*batch, *weight.dims[0], *positions))
    return Handle(product.value, (batch, product.dims[0], *space), node.dtype)


def _rank(node: Node) -> int:
    return 3 if "3d" in node.op else 1 if "1d" in node.op else 2


def _each(sizes: Sizes, rank: int) -> tuple[int, ...]:
    """One number for each dimension."""
    given = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return given * rank if len(given) == 1 else given


WINDOWS: Mapping[str, Lowering] = {
    "max_pool2d_with_indices": _max_pool,
    "max_pool3d_with_indices": _max_pool,
    "max_pool1d": lambda *args, **kwargs: _max_pool(*args, **kwargs)[0],
    "max_pool2d": lambda *args, **kwargs: _max_pool(*args, **kwargs)[0],
    "max_pool3d": lambda *args, **kwargs: _max_pool(*args, **kwargs)[0],
    "avg_pool1d": _avg_pool,
    "avg_pool2d": _avg_pool,
    "avg_pool3d": _avg_pool,
    "convolution": _convolution,
    "_convolution": lambda builder, node, *args: _convolution(builder, node, *args[:9]),
}

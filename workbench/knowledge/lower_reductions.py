"""How reductions, normalisations, losses and matrix products are spelt in sums, maxima, maps and dots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.graph import Node
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.builder import Builder, Handle

Lowering = Callable[..., Any]
Dims = int | Sequence[int] | None


def _dims(dim: Dims) -> tuple[int, ...]:
    return () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)


def _sum(builder: Builder, node: Node, x: Handle, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None) -> Handle:
    return builder.reduce("sum", builder.cast(x, node.dtype), _dims(dim), keepdim)


def _mean(builder: Builder, node: Node, x: Handle, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None) -> Handle:
    return builder.mean(builder.cast(x, node.dtype), _dims(dim), keepdim)


def _extreme(op: str) -> Lowering:
    def lowering(builder: Builder, node: Node, x: Handle, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Handle):
            return builder.map("maximum" if op == "max" else "minimum", x, dim, dtype=node.dtype)
        best = builder.reduce(op, x, _dims(dim), keepdim)
        # max.dim and min.dim have two results; amax, amin and the overload without dim have one.
        if node.op.endswith(".dim"):
            return best, builder.reduce("arg" + op, x, _dims(dim), keepdim, dtype="int64")
        return best

    return lowering


def _arg(op: str) -> Lowering:
    def lowering(builder: Builder, node: Node, x: Handle, dim: int | None = None, keepdim: bool = False) -> Handle:
        return builder.reduce(op, x, _dims(dim), keepdim, dtype="int64")

    return lowering


def _prod(builder: Builder, node: Node, x: Handle, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None) -> Handle:
    return builder.reduce("prod", builder.cast(x, node.dtype), _dims(dim), keepdim)


def _logical(op: str) -> Lowering:
    """Any is the largest truth value, all the smallest."""

    def lowering(builder: Builder, node: Node, x: Handle, dim: Dims = None, keepdim: bool = False) -> Handle:
        truth = builder.cast(builder.cast(x, "bool"), "int32")
        return builder.cast(builder.reduce(op, truth, _dims(dim), keepdim), "bool")

    return lowering


def _variance(builder: Builder, x: Handle, dims: tuple[int, ...], keep: bool, correction: float, dtype: str) -> tuple[Handle, Handle]:
    """Variance and mean, the deviations taken from the mean first: exact where x² less mean² would cancel."""
    mean = builder.mean(x, dims, True)
    centred = builder.map("sub", x, mean, dtype=dtype)
    square = builder.map("mul", centred, centred, dtype=dtype)
    return builder.mean(square, dims, keep, correction), mean


def _var(
    builder: Builder, node: Node, x: Handle, dim: Any = None, *rest: Any, correction: float | None = 1, keepdim: bool = False
) -> Handle:
    if isinstance(dim, bool) or rest:
        raise UnsupportedError(f"{node.op}'s old overload")
    return _variance(builder, x, _dims(dim), keepdim, 1 if correction is None else correction, node.dtype)[0]


def _std(builder: Builder, node: Node, *args: Any, **kwargs: Any) -> Handle:
    return builder.map("sqrt", _var(builder, node, *args, **kwargs), dtype=node.dtype)


def _var_mean(builder: Builder, node: Node, x: Handle, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False) -> Any:
    spread, _ = _variance(builder, x, _dims(dim), keepdim, 1 if correction is None else correction, node.dtype)
    return spread, builder.mean(x, _dims(dim), keepdim)


def _norm(
    builder: Builder, node: Node, x: Handle, ord: Any = 2, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None
) -> Handle:
    x = builder.cast(x, node.dtype)
    ord = 2 if ord is None else ord
    size = builder.map("abs", x, dtype=node.dtype)
    if ord == 2:
        total = builder.reduce("sum", builder.map("mul", x, x, dtype=node.dtype), _dims(dim), keepdim)
        return builder.map("sqrt", total, dtype=node.dtype)
    if ord == 1:
        return builder.reduce("sum", size, _dims(dim), keepdim)
    if ord in (float("inf"), float("-inf")):
        return builder.reduce("max" if ord > 0 else "min", size, _dims(dim), keepdim)
    raise UnsupportedError(f"a norm of order {ord}")


def _logsumexp(builder: Builder, node: Node, x: Handle, dim: Dims, keepdim: bool = False) -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    x = builder.cast(x, node.dtype)
    peak = builder.reduce("max", x, _dims(dim), True)
    total = builder.reduce("sum", op("exp", op("sub", x, peak)), _dims(dim), keepdim)
    peak = peak if keepdim else builder.reduce("max", x, _dims(dim), False)
    return op("add", peak, op("log", total))


def _softmax(builder: Builder, node: Node, x: Handle, dim: int, half_to_float: Any = False, *, dtype: str | None = None) -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    x = builder.cast(x, node.dtype)
    power = op("exp", op("sub", x, builder.reduce("max", x, (dim,), True)))
    # One reciprocal a row, and a product an element: a division an element would cost another pass of the special function unit.
    return op("mul", power, op("div", 1.0, builder.reduce("sum", power, (dim,), True)))


def _log_softmax(builder: Builder, node: Node, x: Handle, dim: int, half_to_float: Any = False, *, dtype: str | None = None) -> Handle:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    x = builder.cast(x, node.dtype)
    shifted = op("sub", x, builder.reduce("max", x, (dim,), True))
    return op("sub", shifted, op("log", builder.reduce("sum", op("exp", shifted), (dim,), True)))


def _layer_norm(
    builder: Builder, node: Node, x: Handle, shape: tuple[int, ...], weight: Handle | None = None, bias: Handle | None = None,
    eps: float = 1e-5, *_: Any,
) -> tuple[Handle, Handle, Handle]:  # fmt: skip
    dims = tuple(range(-len(shape), 0))
    y, mean, scale = _normalise(builder, node, x, dims, eps)
    return _affine(builder, node, y, weight, bias), mean, scale


def _normalise(builder: Builder, node: Node, x: Handle, dims: tuple[int, ...], eps: float) -> tuple[Handle, Handle, Handle]:
    spread, mean = _variance(builder, x, dims, True, 0, node.dtype)
    scale = builder.map("rsqrt", builder.map("add", spread, eps, dtype=node.dtype), dtype=node.dtype)
    centred = builder.map("sub", x, mean, dtype=node.dtype)
    return builder.map("mul", centred, scale, dtype=node.dtype), mean, scale


def _affine(builder: Builder, node: Node, y: Handle, weight: Handle | None, bias: Handle | None) -> Handle:
    y = y if weight is None else builder.map("mul", y, weight, dtype=node.dtype)
    return y if bias is None else builder.map("add", y, bias, dtype=node.dtype)


def _rms_norm(
    builder: Builder, node: Node, x: Handle, shape: tuple[int, ...], weight: Handle | None = None, eps: float | None = None
) -> Any:
    # Without an eps torch takes the machine epsilon of the dtype in which it computes.
    eps = eps if eps is not None else {"float64": 2.0**-52}.get(x.dtype, 2.0**-23)
    square = builder.map("mul", x, x, dtype=node.dtype)
    mean = builder.mean(square, tuple(range(-len(shape), 0)), True)
    scale = builder.map("rsqrt", builder.map("add", mean, eps, dtype=node.dtype), dtype=node.dtype)
    y = _affine(builder, node, builder.map("mul", x, scale, dtype=node.dtype), weight, None)
    return (y, scale) if "fused" in node.op else y


def _per_channel(builder: Builder, x: Handle, rank: int) -> Handle:
    """A tensor of one element per channel, as dimension 1 of `rank` dimensions."""
    return Handle(x.value, ((), *x.dims, *((),) * (rank - 2)), x.dtype)


def _group_norm(
    builder: Builder, node: Node, x: Handle, weight: Handle | None, bias: Handle | None, n: int, c: int, hw: int, groups: int, eps: float
) -> tuple[Handle, None, None]:
    batch, channels, *space = x.dims
    grouped = (
        builder.axes.regroup((channels,), (groups, c // groups))
        if groups not in (1, c)
        else (channels, ())
        if groups == c
        else ((), channels)
    )
    builder.axes.fixed.update(builder.axes.resolve(grouped[0]) if groups != c else ())
    wide = Handle(x.value, (batch, *grouped, *space), x.dtype)
    y, _, _ = _normalise(builder, node, wide, tuple(range(2, len(wide.dims))), eps)
    y = Handle(y.value, (batch, (*grouped[0], *grouped[1]), *space), node.dtype)
    scale, shift = (None if part is None else _per_channel(builder, part, len(y.dims)) for part in (weight, bias))
    return _affine(builder, node, y, scale, shift), None, None


def _batch_norm(
    builder: Builder, node: Node, x: Handle, weight: Handle | None, bias: Handle | None, mean: Handle | None, var: Handle | None,
    training: bool, momentum: float, eps: float, *_: Any,
) -> tuple[Handle, None, None]:  # fmt: skip
    scales = [None if part is None else _per_channel(builder, part, len(x.dims)) for part in (weight, bias, mean, var)]
    if training:
        over = (0, *range(2, len(x.dims)))
        y = _normalise(builder, node, x, over, eps)[0]
        if mean is not None and var is not None:
            _keep_running(builder, x, over, mean, var, momentum)
    else:
        if scales[2] is None or scales[3] is None:
            raise UnsupportedError("a batch norm without statistics")
        scale = builder.map("rsqrt", builder.map("add", scales[3], eps, dtype="float32"), dtype="float32")
        y = builder.map("mul", builder.map("sub", x, scales[2], dtype=node.dtype), scale, dtype=node.dtype)
    return _affine(builder, node, y, scales[0], scales[1]), None, None


def _keep_running(builder: Builder, x: Handle, over: tuple[int, ...], mean: Handle, var: Handle, momentum: float) -> None:
    """Moves the running statistics towards those of this batch, its variance without bias."""
    spread, middle = _variance(builder, x, over, True, 1, "float32")
    for running, found in ((mean, middle), (var, spread)):
        found = Handle(found.value, (x.dims[1],), "float32")
        old = builder.map("mul", running, 1 - momentum, dtype="float32")
        builder.update(running, builder.map("add", old, builder.map("mul", found, momentum, dtype="float32"), dtype="float32"))
    builder.count_call(mean)


def _batch_norm_cudnn(
    builder: Builder, node: Node, x: Handle, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> tuple[Handle, None, None, None]:
    return (*_batch_norm(builder, node, x, weight, bias, mean, var, training, momentum, eps), None)


def _batch_norm_updating(
    builder: Builder, node: Node, x: Handle, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> tuple[Handle, None, None, None]:
    return (*_batch_norm(builder, node, x, weight, bias, mean, var, True, momentum, eps), None)


def _batch_norm_inference(
    builder: Builder, node: Node, x: Handle, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> tuple[Handle, None, None]:
    return _batch_norm(builder, node, x, weight, bias, mean, var, False, momentum, eps)


def _reduced_loss(builder: Builder, node: Node, loss: Handle, reduction: int) -> Handle:
    """ATen's codes: 0 none, 1 mean, 2 sum."""
    if reduction == 0:
        return loss
    return builder.mean(loss, (), False) if reduction == 1 else builder.reduce("sum", loss, (), False)


def _mse_loss(builder: Builder, node: Node, x: Handle, y: Handle, reduction: int = 1) -> Handle:
    difference = builder.map("sub", x, y, dtype=node.dtype)
    return _reduced_loss(builder, node, builder.map("mul", difference, difference, dtype=node.dtype), reduction)


def _huber_like(smooth: bool) -> Lowering:
    """smooth_l1 is huber divided by its threshold."""

    def lowering(builder: Builder, node: Node, x: Handle, y: Handle, reduction: int = 1, threshold: float = 1.0) -> Handle:
        def op(name: str, *args: Any) -> Handle:
            return builder.map(name, *args, dtype=node.dtype)

        size = op("abs", op("sub", x, y))
        if threshold == 0:
            return _reduced_loss(builder, node, size, reduction)
        near, far = op("mul", op("mul", size, size), 0.5), op("sub", size, 0.5 * threshold)
        if smooth:
            near = near if threshold == 1 else op("mul", near, 1.0 / threshold)
        else:
            far = far if threshold == 1 else op("mul", far, threshold)
        chosen = builder.map("where", builder.map("lt", size, threshold, dtype="bool"), near, far, dtype=node.dtype)
        return _reduced_loss(builder, node, chosen, reduction)

    return lowering


def _pick(builder: Builder, node: Node, x: Handle, dim: int, column: Handle) -> Handle:
    """The element at `column` along a dimension: the sum over it of all that is masked elsewhere, which `picks` makes one load."""
    along = x.dims[dim] if len(x.dims) > dim else x.dims[-1]
    if not along:
        raise UnsupportedError("an element of a dimension of size 1")
    place = builder.index(along)
    place = Handle(place.value, (along, *((),) * (len(column.dims) - dim - 1)), place.dtype)
    hit = builder.map("eq", place, column, dtype="bool")
    return builder.reduce("sum", builder.map("where", hit, x, 0.0, dtype=node.dtype), (dim,), False)


def _gather(builder: Builder, node: Node, x: Handle, dim: int, index: Handle, *, sparse_grad: bool = False) -> Handle:
    """One element of each row. Its other dimensions must be those of `x`."""
    dim %= len(x.dims)
    if index.dims[dim] or node.dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise UnsupportedError("a gather of several elements a row, or of integers")
    for place, (ours, theirs) in enumerate(zip(x.dims, index.dims, strict=True)):
        if place != dim:
            builder.axes.unify(ours, theirs)
    picked = _pick(builder, node, x, dim, index)
    return Handle(picked.value, (*picked.dims[:dim], (), *picked.dims[dim:]), node.dtype)


def _nll_loss(
    builder: Builder, node: Node, logp: Handle, target: Handle, weight: Handle | None, reduction: int, ignore: int
) -> tuple[Handle, Handle | None]:
    def op(name: str, *args: Any) -> Handle:
        return builder.map(name, *args, dtype=node.dtype)

    if len(logp.dims) != 2:
        raise UnsupportedError("a negative log likelihood of unusual rank")
    builder.axes.unify(logp.dims[0], target.dims[0])
    column = Handle(target.value, (target.dims[0], ()), target.dtype)
    loss = op("neg", _pick(builder, node, logp, 1, column))
    counted = builder.map("ne", target, ignore, dtype="bool")
    share: Handle | None = None
    if weight is not None:
        builder.axes.unify(logp.dims[1], weight.dims[0])
        share = builder.map("where", counted, _pick(builder, node, weight, 1, column), 0.0, dtype=node.dtype)
        loss = op("mul", loss, share)
    loss = builder.map("where", counted, loss, 0.0, dtype=node.dtype)
    if reduction == 0:
        return loss, None
    total = builder.reduce("sum", loss, (), False)
    number = builder.reduce("sum", share or builder.cast(counted, "float32"), (), False)
    return (op("div", total, number) if reduction == 1 else total), number


def _mm(builder: Builder, node: Node, x: Handle, y: Handle) -> Handle:
    return _product(builder, x, y, node.dtype)


def _product(builder: Builder, x: Handle, y: Handle, dtype: str) -> Handle:
    """A matrix product; of a single row or column a sum of products, which waits for memory alone."""
    if (x.dims[-2] and y.dims[-1]) or not x.dims[-1]:
        return builder.dot(x, y, dtype)
    builder.axes.unify(x.dims[-1], y.dims[-2])
    wide = Handle(x.value, (*x.dims, ()), x.dtype), Handle(y.value, (*y.dims[:-2], (), *y.dims[-2:]), y.dtype)
    return builder.reduce("sum", builder.map("mul", *wide, dtype=dtype), (-2,), False)


def _addmm(builder: Builder, node: Node, bias: Handle, x: Handle, y: Handle, *, beta: Any = 1, alpha: Any = 1) -> Handle:
    product = _product(builder, x, y, node.dtype)
    product = product if alpha == 1 else builder.map("mul", product, alpha, dtype=node.dtype)
    if beta == 0:
        return product
    bias = bias if beta == 1 else builder.map("mul", bias, beta, dtype=node.dtype)
    return builder.map("add", product, bias, dtype=node.dtype)


def _linear(builder: Builder, node: Node, x: Handle, weight: Handle, bias: Handle | None = None) -> Handle:
    *batch, inner = x.dims
    rows = tuple(atom for dim in batch for atom in dim)
    turned = Handle(weight.value, weight.dims[::-1], weight.dtype)
    product = _product(builder, Handle(x.value, (rows, inner), x.dtype), turned, node.dtype)
    product = Handle(product.value, (*batch, product.dims[-1]), product.dtype)
    return product if bias is None else builder.map("add", product, bias, dtype=node.dtype)


def _vector_product(builder: Builder, node: Node, x: Handle, y: Handle) -> Handle:
    """Products with a vector: too thin for tensor cores, so a sum of products."""
    return builder.reduce("sum", builder.map("mul", x, y, dtype=node.dtype), (-1,), False)


def _scan(op: str) -> Lowering:
    def lowering(builder: Builder, node: Node, x: Handle, dim: int, *, dtype: str | None = None) -> Handle:
        wide = builder.cast(x, node.dtype)
        turned = dim % max(1, len(x.dims)) in x.flipped
        scanned = builder.scan(f"{op}_from_end" if turned else op, wide, dim, node.dtype)
        if x.trimmed >= 0 and x.trimmed != dim % len(x.dims):
            raise UnsupportedError(f"{node.op} of a part of a dimension")
        return Handle(scanned.value, scanned.dims, scanned.dtype, x.flipped, x.trimmed)

    return lowering


REDUCTIONS: Mapping[str, Lowering] = {
    "sum": _sum, "mean": _mean, "amax": _extreme("max"), "amin": _extreme("min"), "max": _extreme("max"), "min": _extreme("min"),
    "argmax": _arg("argmax"), "argmin": _arg("argmin"), "prod": _prod, "any": _logical("max"), "all": _logical("min"), "var": _var,
    "std": _std, "var_mean": _var_mean, "linalg_vector_norm": _norm, "norm": _norm, "logsumexp": _logsumexp, "_softmax": _softmax,
    "softmax": _softmax, "_log_softmax": _log_softmax, "log_softmax": _log_softmax, "native_layer_norm": _layer_norm,
    "layer_norm": lambda builder, node, *args: _layer_norm(builder, node, *args[:5])[0], "rms_norm": _rms_norm,
    "_fused_rms_norm": _rms_norm, "native_group_norm": _group_norm, "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_inference, "_native_batch_norm_legit": _batch_norm,
    "cudnn_batch_norm": _batch_norm_cudnn, "_batch_norm_with_update": _batch_norm_updating,
    "mse_loss": _mse_loss, "smooth_l1_loss": _huber_like(True),
    "huber_loss": _huber_like(False), "nll_loss_forward": _nll_loss, "gather": _gather,
    "mm": _mm, "bmm": _mm, "addmm": _addmm, "baddbmm": _addmm,
    "linear": _linear, "mv": _vector_product, "dot": _vector_product, "cumsum": _scan("sum"), "cumprod": _scan("prod"),
}  # fmt: skip

"""The reference again, in other honest orders of accumulation.

How far a right kernel may be from the truth is measured by the reference's own error. But that error is partly luck: its reductions happen
to run in one order, or on the CPU in double precision. A kernel that loops over tiles with one accumulator per lane, or that adds partial
sums one after the other, is as honest. So the error is taken over these orders too: every sum, mean, variance, matrix product, running
sum and convolution of the reference is cut into tiles along its reduction, and these are accumulated in sequence, in the dtype that the
op accumulates in (float32 for half precision).

``loop`` keeps one accumulator per lane and folds them at the end; ``split`` folds each tile and adds the partial results in sequence;
``sequence`` adds one element after the other, as a program that has a row to itself may do, and ``backwards`` from the last to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.capture.references import Reference
from workbench.judge.correctness.truth import clone

Order = Literal["loop", "split", "sequence", "backwards"]
ORDERS: tuple[Order, ...] = ("loop", "split", "sequence", "backwards")
_MOST_STEPS = 128
_MOST_IN_SEQUENCE = 1 << 22
"""Elements that are added one after the other; of larger tensors, tiles are."""
_aten = torch.ops.aten


def run(reference: Reference, inputs: Sequence[Any], order: Order) -> list[torch.Tensor]:
    """The reference's outputs with its reductions re-tiled."""
    with sdpa_kernel(SDPBackend.MATH), Retiled(order):
        return reference(*[clone(item) for item in inputs])


class Retiled(TorchDispatchMode):  # type: ignore[misc]
    """Replaces reductions; what is composed of reductions is decomposed first."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler at the first call, which takes seconds; nothing is compiled in here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = _OWN.get(func)
        # The mode is off in here, so what they call runs as it is.
        if own is not None and (done := own(self.order, *args, **kwargs)) is not None:
            return done
        decomposed = _decompositions().get(func)
        if decomposed is not None:
            with self:
                return decomposed(*args, **kwargs)
        return func(*args, **kwargs)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _fold(order: Order, values: torch.Tensor) -> torch.Tensor:
    """Sums the last dimension of a wide tensor: shape (..., n) to (...)."""
    n = values.shape[-1]
    one_by_one = order in ("sequence", "backwards")
    if order == "backwards":
        values = values.flip(-1)
    if one_by_one and values.device.type == "cpu" and values.numel() <= _MOST_IN_SEQUENCE:
        return _running(values)[..., -1]
    # On a card each step is a launch, and a program there seldom has more than so many steps to itself.
    finer = 16 if values.device.type == "cpu" else 2
    tile = max(1, -(-n // (finer * _MOST_STEPS))) if one_by_one else max(32, -(-n // _MOST_STEPS))
    steps = -(-n // tile)
    if steps > 1:
        if pad := steps * tile - n:
            values = torch.nn.functional.pad(values, (0, pad))
        tiles = values.reshape(*values.shape[:-1], steps, tile)
        if order == "split":
            tiles = _raw_sum(tiles).unsqueeze(-1)
        total = tiles[..., 0, :].clone()
        for step in range(1, steps):
            total += tiles[..., step, :]
        return _raw_sum(total)
    return _raw_sum(values)


def _running(values: torch.Tensor) -> torch.Tensor:
    """Running sums along the last dimension in the tensor's own dtype: PyTorch's on the CPU are in double precision, numpy's are not."""
    return torch.from_numpy(np.add.accumulate(values.numpy(), axis=-1, dtype=values.numpy().dtype))


def _raw_sum(values: torch.Tensor) -> torch.Tensor:
    """A sum of one tile, by halving: a tree, as warps do it."""
    while (n := values.shape[-1]) > 1:
        half = n // 2
        front = values[..., :half] + values[..., half : 2 * half]
        values = torch.cat([front, values[..., 2 * half :]], dim=-1) if n % 2 else front
    return values[..., 0]


def _sum(
    order: Order, x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, scale: bool = False
) -> torch.Tensor | None:
    if not x.is_floating_point() or x.numel() == 0:
        return None
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    dims = sorted({d % x.dim() for d in dims}) if x.dim() else []
    kept = [d for d in range(x.dim()) if d not in dims]
    moved = _wide(x if dtype is None else x.to(dtype)).permute(*kept, *dims).reshape(*[x.shape[d] for d in kept], -1)
    total = _fold(order, moved)
    if scale:
        total = total / moved.shape[-1]
    if keepdim:
        total = total.reshape([1 if d in dims else x.shape[d] for d in range(x.dim())])
    return total.to(dtype or x.dtype)


def _mean(order: Order, x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> torch.Tensor | None:
    return _sum(order, x, dim, keepdim, dtype=dtype, scale=True)


def _var(order: Order, x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> torch.Tensor | None:
    mean = _mean(order, _wide(x), dim, True)
    if mean is None:
        return None
    squares = _merged(_wide(x), dim, keepdim) if order == "split" else _sum(order, (_wide(x) - mean).square(), dim, keepdim)
    assert squares is not None
    count = x.numel() // max(1, mean.numel())
    return (squares / max(0, count - (1 if correction is None else correction))).to(x.dtype)


def _merged(x: torch.Tensor, dim: Any, keepdim: bool) -> torch.Tensor:
    """Squares about the mean in one pass, as Welford does it: each lane updates its own mean, then lanes are merged."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    dims = sorted({d % x.dim() for d in dims}) if x.dim() else []
    kept = [d for d in range(x.dim()) if d not in dims]
    rows = x.permute(*kept, *dims).reshape(*[x.shape[d] for d in kept], -1)
    n = rows.shape[-1]
    lanes = max(1, min(n, 32, n // 2), -(-n // (4 * _MOST_STEPS)))
    full = n // lanes * lanes
    tiles = rows[..., :full].reshape(*rows.shape[:-1], n // lanes, lanes)
    mean, squares = tiles[..., 0, :], torch.zeros_like(tiles[..., 0, :])
    for step in range(1, tiles.shape[-2]):
        away = tiles[..., step, :] - mean
        mean = mean + away / (step + 1)
        squares = squares + away * (tiles[..., step, :] - mean)
    parts = [(mean[..., lane], squares[..., lane], float(tiles.shape[-2])) for lane in range(lanes)]
    parts += [(rows[..., place], torch.zeros_like(rows[..., 0]), 1.0) for place in range(full, n)]
    center, total, count = parts[0]
    for other, more, size in parts[1:]:
        away, both = other - center, count + size
        total = total + more + away.square() * (count * size / both)
        center, count = center + away * (size / both), both
    return total.reshape([1 if d in dims else x.shape[d] for d in range(x.dim())]) if keepdim else total


def _old_var(order: Order, x: torch.Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> torch.Tensor | None:
    return _var(order, x, dim, correction=int(unbiased), keepdim=keepdim)


def _old_std(order: Order, x: torch.Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> torch.Tensor | None:
    return _std(order, x, dim, correction=int(unbiased), keepdim=keepdim)


def _old_var_mean(order: Order, x: torch.Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    return _var_mean(order, x, dim, correction=int(unbiased), keepdim=keepdim)


def _std(order: Order, x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> torch.Tensor | None:
    variance = _var(order, _wide(x), dim, correction=correction, keepdim=keepdim)
    return None if variance is None else variance.sqrt().to(x.dtype)


def _var_mean(order: Order, x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    variance = _var(order, x, dim, correction=correction, keepdim=keepdim)
    return None if variance is None else (variance, _mean(order, x, dim, keepdim))


def _mm(order: Order, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """Matrix products, batched or not, in pieces of K that are added in sequence."""
    if not a.is_floating_point():
        return None
    k = a.shape[-1]
    if order == "backwards":
        return None
    steps = {"loop": _MOST_STEPS, "split": 4, "sequence": 4 * _MOST_STEPS}[order]
    tile = max(8 if order == "sequence" else 32, -(-k // steps))
    if k <= tile:
        return None
    wide_a, wide_b = _wide(a), _wide(b)
    multiply = _aten.bmm.default if a.dim() == 3 else _aten.mm.default
    total = None
    for start in range(0, k, tile):
        part = multiply(wide_a[..., start : start + tile], wide_b[..., start : start + tile, :])
        total = part if total is None else total + part
    assert total is not None
    return total.to(a.dtype)


def _addmm(order: Order, bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> torch.Tensor | None:
    product = _mm(order, _wide(a), _wide(b))
    return None if product is None else (beta * _wide(bias) + alpha * product).to(a.dtype)


def _mv(order: Order, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor | None:
    product = _mm(order, a, x.unsqueeze(-1))
    return None if product is None else product.squeeze(-1)


def _dot(order: Order, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    return _sum(order, _wide(a) * _wide(b), dtype=a.dtype)


def _cumsum(order: Order, x: torch.Tensor, dim: int, *, dtype: Any = None) -> torch.Tensor | None:
    if not x.is_floating_point() or x.dim() == 0 or x.numel() == 0:
        return None
    values = _wide(x if dtype is None else x.to(dtype)).movedim(dim, -1)
    n = values.shape[-1]
    if order == "sequence" and values.device.type == "cpu" and values.numel() <= _MOST_IN_SEQUENCE:
        return _running(values).movedim(-1, dim).contiguous().to(dtype or x.dtype)
    tile = max(32, -(-n // (2 * _MOST_STEPS)))
    steps = -(-n // tile)
    tiles = torch.nn.functional.pad(values, (0, steps * tile - n)).reshape(*values.shape[:-1], steps, tile).clone()
    for place in range(1, tile):
        tiles[..., place] += tiles[..., place - 1]
    carry = torch.zeros_like(tiles[..., 0, 0])
    for step in range(steps):
        last = tiles[..., step, -1].clone()
        tiles[..., step, :] += carry.unsqueeze(-1)
        carry = carry + last
    return tiles.reshape(*values.shape[:-1], steps * tile)[..., :n].movedim(-1, dim).contiguous().to(dtype or x.dtype)


def _convolution(
    order: Order, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> torch.Tensor | None:  # fmt: skip
    channels = x.shape[1]
    if order == "backwards" or groups != 1 or channels < 2 or not x.is_floating_point():
        return None
    tile = max(1, -(-channels // {"loop": 8, "split": 2, "sequence": 32}[order]))
    total = None
    for start in range(0, channels, tile):
        piece = slice(start, start + tile)
        part_weight = weight[piece] if transposed else weight[:, piece]
        part = _aten.convolution.default(
            _wide(x[:, piece]).contiguous(), _wide(part_weight).contiguous(), None, stride, padding, dilation, transposed, output_padding, 1
        )  # fmt: skip
        total = part if total is None else total + part
    assert total is not None
    if bias is not None:
        total = total + _wide(bias).reshape(1, -1, *[1] * (total.dim() - 2))
    return total.to(x.dtype)


_OWN: Mapping[Any, Callable[..., Any]] = {
    _aten.sum.default: _sum, _aten.sum.dim_IntList: _sum, _aten.mean.default: _mean, _aten.mean.dim: _mean,
    _aten.var.correction: _var, _aten.std.correction: _std, _aten.var_mean.correction: _var_mean,
    _aten.var.dim: _old_var, _aten.std.dim: _old_std, _aten.var_mean.dim: _old_var_mean,
    _aten.addmm.default: _addmm, _aten.baddbmm.default: _addmm, _aten.mv.default: _mv, _aten.dot.default: _dot,
    _aten.mm.default: _mm, _aten.bmm.default: _mm, _aten.cumsum.default: _cumsum, _aten.convolution.default: _convolution,
}  # fmt: skip

_DECOMPOSE = (
    "_softmax.default", "_log_softmax.default", "native_layer_norm.default", "native_group_norm.default", "native_batch_norm.default",
    "_native_batch_norm_legit_no_training.default", "_native_batch_norm_legit.default", "_fused_rms_norm.default",
    "linalg_vector_norm.default", "logsumexp.default", "nll_loss_forward.default", "mse_loss.default",
    "binary_cross_entropy.default", "smooth_l1_loss.default", "huber_loss.default",
)  # fmt: skip
_table: dict[Any, Callable[..., Any]] = {}


def prepare() -> None:
    """Imports PyTorch's decompositions, which takes a second or two, before anyone waits for them."""
    _decompositions()


def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """PyTorch's own decompositions of what is composed of reductions."""
    if not _table:
        from torch._decomp import get_decompositions

        packets = []
        for name in _DECOMPOSE:
            packet, _, overload = name.partition(".")
            if hasattr(_aten, packet):
                packets.append(getattr(getattr(_aten, packet), overload))
        _table.update(get_decompositions(packets))
        _table.setdefault(None, len)
    return _table

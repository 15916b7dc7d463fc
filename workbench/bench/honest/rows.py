"""Ops that reduce rows: sums, norms, softmax, losses, running sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from workbench.bench.honest.kernels import Function, Kernel, Op, Shapes, dishonest
from workbench.bench.honest.sums import SUMS, Sum, lanes, tree

LONG, WIDE, SHORT, ONE = (5, 2051), (29, 259), (256, 24), (1, 1027)
_LOG2E = 1.4426950408889634


def ops() -> Iterator[Op]:
    """Each with every way to add up, and what is special to it."""
    one = tuple((shape,) for shape in (LONG, WIDE, SHORT, ONE))
    with_row = tuple((shape, shape[-1:]) for shape in (LONG, WIDE, SHORT))
    with_two = tuple((shape, shape[-1:], shape[-1:]) for shape in (LONG, WIDE, SHORT))
    yield _op("sum", lambda x: x.sum(-1), one, _sum)
    yield _op("mean", lambda x: x.mean(-1), one, _mean)
    yield _op("mean of all", lambda x: x.mean(), one, lambda s: lambda x: _mean(s)(x.reshape(1, -1))[0], scaled=False)
    yield _op("l2 norm", lambda x: x / x.norm(dim=-1, keepdim=True), one, _l2)
    yield _op("softmax", lambda x: torch.softmax(x, -1), one, _softmax, _softmaxes())
    yield _op("log softmax", lambda x: torch.log_softmax(x, -1), one, _log_softmax)
    yield _op("logsumexp", lambda x: torch.logsumexp(x, -1), one, _logsumexp)
    yield _op("variance", lambda x: x.var(-1), one, _variance, _variances())
    yield _op("layer norm", lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), with_two, _layer_norm, _layer_norms())
    yield _op("rms norm", _rms_reference, with_row, _rms_norm, _rms_norms())
    yield _op("squared error", lambda x, y: F.mse_loss(x, y), tuple((s, s) for s in (LONG, WIDE)), _mse, scaled=False)
    yield _op(
        "cross entropy", lambda x, t: F.cross_entropy(x, t), (((13, 1027), (13,)), ((128, 31), (128,))), _cross_entropy,
        integers=((1, 31),), scaled=False,
    )  # fmt: skip
    yield Op("running sum", lambda x: x.cumsum(-1), one, tuple(_running_sums()))
    yield Op(
        "group norm", lambda x, w, b: F.group_norm(x, 4, w, b), (((5, 16, 9, 13), (16,), (16,)),),
        (*_each(_group_norm), *dishonest(lambda x, w, b: F.group_norm(x, 4, w, b))),
    )  # fmt: skip


def _op(
    name: str, reference: Function, shapes: Shapes, by_sum: Function, special: Iterable[Kernel] = (), *, scaled: bool = True,
    integers: tuple[tuple[int, int], ...] = (),
) -> Op:  # fmt: skip
    return Op(name, reference, shapes, (*_each(by_sum), *special, *dishonest(reference, scaled=scaled)), integers=integers)


def _each(by_sum: Function) -> Iterator[Kernel]:
    for name, add in SUMS.items():
        yield Kernel(name, by_sum(add))


def _sum(add: Sum) -> Function:
    return lambda x: add(x.float()).to(x.dtype)


def _mean(add: Sum) -> Function:
    return lambda x: (add(x.float()) / x.shape[-1]).to(x.dtype)


def _l2(add: Sum) -> Function:
    return lambda x: (x.float() * torch.rsqrt(add(x.float().square())).unsqueeze(-1)).to(x.dtype)


def _softmax(add: Sum) -> Function:
    def call(x: Tensor) -> Tensor:
        e = torch.exp(x.float() - x.float().amax(-1, keepdim=True))
        return (e / add(e).unsqueeze(-1)).to(x.dtype)

    return call


def _softmaxes() -> Iterator[Kernel]:
    def by_exp2(x: Tensor) -> Tensor:
        scaled = x.float() * _LOG2E
        e = torch.exp2(scaled - scaled.amax(-1, keepdim=True))
        return (e * (1 / tree(e)).unsqueeze(-1)).to(x.dtype)

    def online(x: Tensor) -> Tensor:
        most, total = _online(x.float(), 128)
        return (torch.exp(x.float() - most.unsqueeze(-1)) / total.unsqueeze(-1)).to(x.dtype)

    def composed(x: Tensor) -> Tensor:  # each step rounded to the dtype, as PyTorch's own calls do
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)

    def unshifted(x: Tensor) -> Tensor:
        e = torch.exp(x.float())
        return (e / tree(e).unsqueeze(-1)).to(x.dtype)

    yield Kernel("by exp2", by_exp2)
    yield Kernel("online", online)
    yield Kernel("composed", composed)
    yield Kernel("without the maximum", unshifted, False)


def _online(x: Tensor, tile: int) -> tuple[Tensor, Tensor]:
    most = torch.full_like(x[..., 0], -math.inf)
    total = torch.zeros_like(most)
    for start in range(0, x.shape[-1], tile):
        part = x[..., start : start + tile]
        now = torch.maximum(most, part.amax(-1))
        total = total * torch.exp(most - now) + tree(torch.exp(part - now.unsqueeze(-1)))
        most = now
    return most, total


def _log_softmax(add: Sum) -> Function:
    def call(x: Tensor) -> Tensor:
        shifted = x.float() - x.float().amax(-1, keepdim=True)
        return (shifted - torch.log(add(torch.exp(shifted))).unsqueeze(-1)).to(x.dtype)

    return call


def _logsumexp(add: Sum) -> Function:
    def call(x: Tensor) -> Tensor:
        most = x.float().amax(-1)
        return (most + torch.log(add(torch.exp(x.float() - most.unsqueeze(-1))))).to(x.dtype)

    return call


def _moments(x: Tensor, add: Sum) -> tuple[Tensor, Tensor]:
    """Mean and summed squares about it, in two passes."""
    mean = add(x) / x.shape[-1]
    return mean, add((x - mean.unsqueeze(-1)).square())


def _welford(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The same in one pass: each lane updates its own, then lanes are merged in pairs."""
    n = x.shape[-1]
    width = min(width, n)
    full = n // width * width
    tiles = x[..., :full].reshape(*x.shape[:-1], n // width, width)
    mean, squares = tiles[..., 0, :].clone(), torch.zeros_like(tiles[..., 0, :])
    for step in range(1, tiles.shape[-2]):
        delta = tiles[..., step, :] - mean
        mean = mean + delta / (step + 1)
        squares = squares + delta * (tiles[..., step, :] - mean)
    counts = torch.full_like(mean, float(tiles.shape[-2]))
    if n > full:
        rest = x[..., full:]
        mean, squares = torch.cat([mean, rest], -1), torch.cat([squares, torch.zeros_like(rest)], -1)
        counts = torch.cat([counts, torch.ones_like(rest)], -1)
    while mean.shape[-1] > 1:
        if mean.shape[-1] % 2:
            mean, squares, counts = (F.pad(item, (0, 1)) for item in (mean, squares, counts))
        a, b, n_a, n_b = mean[..., ::2], mean[..., 1::2], counts[..., ::2], counts[..., 1::2]
        both = n_a + n_b
        delta, share = b - a, torch.where(both > 0, n_b / both.clamp_min(1), 0.0)
        squares = squares[..., ::2] + squares[..., 1::2] + delta.square() * n_a * share
        mean, counts = a + delta * share, both
    return mean[..., 0], squares[..., 0]


def _one_pass(x: Tensor) -> tuple[Tensor, Tensor]:
    mean = tree(x) / x.shape[-1]
    return mean, (tree(x.square()) - x.shape[-1] * mean.square()).clamp_min(0)


def _variance(add: Sum) -> Function:
    return lambda x: (_moments(x.float(), add)[1] / (x.shape[-1] - 1)).to(x.dtype)


def _variances() -> Iterator[Kernel]:
    yield Kernel("Welford", lambda x: (_welford(x.float(), 64)[1] / (x.shape[-1] - 1)).to(x.dtype))
    yield Kernel("one pass", lambda x: (_one_pass(x.float())[1] / (x.shape[-1] - 1)).to(x.dtype), False, ("float32",))


def _normalised(x: Tensor, w: Tensor, b: Tensor, moments: tuple[Tensor, Tensor]) -> Tensor:
    mean, squares = moments
    scale = torch.rsqrt(squares / x.shape[-1] + 1e-5)
    return ((x.float() - mean.unsqueeze(-1)) * scale.unsqueeze(-1) * w.float() + b.float()).to(x.dtype)


def _layer_norm(add: Sum) -> Function:
    return lambda x, w, b: _normalised(x, w, b, _moments(x.float(), add))


def _layer_norms() -> Iterator[Kernel]:
    def composed(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + 1e-5) * w + b

    yield Kernel("Welford", lambda x, w, b: _normalised(x, w, b, _welford(x.float(), 128)))
    yield Kernel("composed", composed, True, ("float32",))
    yield Kernel("one pass", lambda x, w, b: _normalised(x, w, b, _one_pass(x.float())), False, ("float32",))
    yield Kernel("without the bias", lambda x, w, b: F.layer_norm(x, x.shape[-1:], w), False)


def _rms_reference(x: Tensor, w: Tensor) -> Tensor:
    return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def _rms_norm(add: Sum) -> Function:
    def call(x: Tensor, w: Tensor) -> Tensor:
        scale = torch.rsqrt(add(x.float().square()) / x.shape[-1] + 1e-6)
        return (x.float() * scale.unsqueeze(-1) * w.float()).to(x.dtype)

    return call


def _rms_norms() -> Iterator[Kernel]:
    def divided(x: Tensor, w: Tensor) -> Tensor:
        h = x.float()
        return (h / torch.sqrt(lanes(128)(h * h).unsqueeze(-1) / x.shape[-1] + 1e-6) * w.float()).to(x.dtype)

    yield Kernel("divided by the root", divided)
    yield Kernel("mean of half the row", lambda x, w: _half_mean(x, w), False)


def _half_mean(x: Tensor, w: Tensor) -> Tensor:
    h = x.float()
    scale = torch.rsqrt(h[..., : -(-x.shape[-1] // 2)].square().mean(-1, keepdim=True) + 1e-6)
    return (h * scale * w.float()).to(x.dtype)


def _mse(add: Sum) -> Function:
    return lambda x, y: (add((x.float() - y.float()).square().reshape(-1)) / x.numel()).to(x.dtype)


def _cross_entropy(add: Sum) -> Function:
    def call(x: Tensor, t: Tensor) -> Tensor:
        h = x.float()
        most = h.amax(-1)
        lse = most + torch.log(add(torch.exp(h - most.unsqueeze(-1))))
        return (add(lse - h.gather(-1, t.unsqueeze(-1)).squeeze(-1)) / x.shape[0]).to(x.dtype)

    return call


def _group_norm(add: Sum) -> Function:
    def call(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        h = x.float().reshape(x.shape[0], 4, -1)
        mean, squares = _moments(h, add)
        scale = torch.rsqrt(squares / h.shape[-1] + 1e-5)
        normal = ((h - mean.unsqueeze(-1)) * scale.unsqueeze(-1)).reshape(x.shape)
        return (normal * w.float().reshape(1, -1, 1, 1) + b.float().reshape(1, -1, 1, 1)).to(x.dtype)

    return call


def _running_sums() -> Iterator[Kernel]:
    def chunked(width: int) -> Function:
        def call(x: Tensor) -> Tensor:
            h = x.float()
            n = h.shape[-1]
            steps = -(-n // width)
            tiles = F.pad(h, (0, steps * width - n)).reshape(*h.shape[:-1], steps, width).clone()
            for place in range(1, width):
                tiles[..., place] = tiles[..., place] + tiles[..., place - 1]
            carry = torch.zeros_like(tiles[..., 0, 0])
            for step in range(steps):
                last = tiles[..., step, -1].clone()
                tiles[..., step, :] = tiles[..., step, :] + carry.unsqueeze(-1)
                carry = carry + last
            return tiles.reshape(*h.shape[:-1], -1)[..., :n].to(x.dtype)

        return call

    def scanned(x: Tensor) -> Tensor:  # Hillis and Steele
        h, reach = x.float(), 1
        while reach < h.shape[-1]:
            h = torch.cat([h[..., :reach], h[..., reach:] + h[..., :-reach]], -1)
            reach *= 2
        return h.to(x.dtype)

    yield Kernel("chunks of 32", chunked(32))
    yield Kernel("chunks of 256", chunked(256))
    yield Kernel("in sequence", chunked(1 << 13))
    yield Kernel("by doubling", scanned)
    yield from dishonest(lambda x: x.cumsum(-1))

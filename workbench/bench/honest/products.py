"""Matrix products, attention and convolution, with their ways to add up along K."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from workbench.bench.honest.kernels import Function, Kernel, Op, dishonest
from workbench.bench.honest.sums import SUMS, Sum

_KINDS = ("normal", "large", "small", "sorted", "outliers", "offset")


def ops() -> Iterator[Op]:
    """Product, linear layer, attention, convolution."""
    shapes = (((19, 700), (700, 23)), ((48, 128), (128, 17)))
    yield Op("matmul", torch.matmul, shapes, (*_matmuls(torch.matmul), *dishonest(torch.matmul), *_coarse(torch.matmul)), kinds=_KINDS)
    with_bias = tuple((a, b, (b[1],)) for a, b in shapes)
    yield Op("linear and gelu", _gelu_reference, with_bias, (*_linears(), *dishonest(_gelu_reference), *_coarse(_gelu_reference)))
    heads = (((1, 2, 65, 32),) * 3, ((1, 1, 130, 16),) * 3)
    yield Op(
        "attention", _attention_reference, heads, (*_attentions(), *dishonest(_attention_reference)), kinds=("normal", "small", "sorted"),
    )  # fmt: skip
    yield Op("convolution", _convolution, (((3, 16, 11, 13), (8, 16, 3, 3), (8,)),), (*_convolutions(), *dishonest(_convolution)), kinds=_KINDS)  # fmt: skip  # noqa: E501


def _tf32(x: Tensor) -> Tensor:
    return ((x.float().contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _coarse(reference: Function) -> Iterator[Kernel]:
    def call(a: Tensor, b: Tensor, *rest: Tensor) -> Tensor:
        result: Tensor = reference(_tf32(a), _tf32(b), *rest)
        return result

    yield Kernel("TF32", call, False, ("float32",))


def _pieces(a: Tensor, b: Tensor, size: int) -> Iterator[Tensor]:
    for start in range(0, a.shape[-1], size):
        yield a[..., start : start + size] @ b[..., start : start + size, :]


def _added(pieces: Iterator[Tensor]) -> Tensor:
    total = next(pieces)
    for piece in pieces:
        total = total + piece
    return total


def _product(name: str, a: Tensor, b: Tensor) -> Tensor:
    """In single precision, along K as named."""
    a, b = a.float(), b.float()
    if name.startswith("K tiles of"):
        return _added(_pieces(a, b, int(name.split()[-1])))
    if name == "split K in 4, atomics":
        return _added(iter(list(_pieces(a, b, -(-a.shape[-1] // 4)))[::-1]))
    if name == "TF32 in three":
        big_a, big_b = _tf32(a), _tf32(b)
        return big_a @ big_b + (big_a @ _tf32(b - big_b) + _tf32(a - big_a) @ big_b)
    add: Sum = SUMS[name]
    return add(a.unsqueeze(-2) * b.transpose(-1, -2).unsqueeze(-3))


_PRODUCTS = ("K tiles of 16", "K tiles of 64", "split K in 4, atomics", "in sequence", "32 lanes", "tree", "Kahan")


def _matmuls(reference: Function) -> Iterator[Kernel]:
    for name in _PRODUCTS:
        yield Kernel(name, lambda a, b, name=name: _product(name, a, b).to(a.dtype))
    yield Kernel("TF32 in three", lambda a, b: _product("TF32 in three", a, b).to(a.dtype), True, ("float32",))


def _gelu_reference(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x @ w + b)


def _gelu(h: Tensor) -> Tensor:
    return 0.5 * h * (1 + torch.erf(h * 0.7071067811865476))


def _linears() -> Iterator[Kernel]:
    for name in _PRODUCTS:
        yield Kernel(name, lambda x, w, b, name=name: _gelu(_product(name, x, w) + b.float()).to(x.dtype))
    yield Kernel("gelu by tanh", lambda x, w, b: F.gelu((x.float() @ w.float() + b.float()), approximate="tanh").to(x.dtype), False, ("float32",))  # fmt: skip  # noqa: E501
    yield Kernel("without the bias", lambda x, w, b: _gelu(x.float() @ w.float()).to(x.dtype), False)


def _attention_reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def _attentions() -> Iterator[Kernel]:
    def online(tile: int, base2: bool) -> Function:
        def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            factor = 1 / math.sqrt(q.shape[-1]) * (1.4426950408889634 if base2 else 1)
            raised = torch.exp2 if base2 else torch.exp
            most = torch.full(q.shape[:-1], -math.inf, device=q.device)
            total, out = torch.zeros_like(most), torch.zeros(*q.shape[:-1], v.shape[-1], device=q.device)
            for start in range(0, k.shape[-2], tile):
                scores = q.float() @ k[..., start : start + tile, :].float().transpose(-1, -2) * factor
                now = torch.maximum(most, scores.amax(-1))
                p, keep = raised(scores - now.unsqueeze(-1)), raised(most - now)
                total = total * keep + p.sum(-1)
                out = out * keep.unsqueeze(-1) + p.to(q.dtype).float() @ v[..., start : start + tile, :].float()
                most = now
            return (out / total.unsqueeze(-1)).to(q.dtype)

        return call

    def composed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q.float() @ k.float().transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)

    yield Kernel("online in tiles of 16", online(16, False))
    yield Kernel("online in tiles of 64", online(64, False))
    yield Kernel("online by exp2", online(32, True))
    yield Kernel("composed", composed)


def _convolution(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(x, w, b, padding=1)


def _convolutions() -> Iterator[Kernel]:
    def unfolded(name: str) -> Function:
        def call(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            columns = F.unfold(x.float(), 3, padding=1)
            out = _product(name, w.float().reshape(w.shape[0], -1), columns) + b.float().reshape(1, -1, 1)
            return out.reshape(x.shape[0], w.shape[0], *x.shape[2:]).to(x.dtype)

        return call

    def direct(x: Tensor, w: Tensor, b: Tensor) -> Tensor:  # tap by tap
        padded = F.pad(x.float(), (1, 1, 1, 1))
        total = torch.zeros(x.shape[0], w.shape[0], *x.shape[2:], device=x.device)
        for row in range(3):
            for column in range(3):
                part = padded[..., row : row + x.shape[2], column : column + x.shape[3]]
                total = total + torch.einsum("nchw,oc->nohw", part, w[:, :, row, column].float())
        return (total + b.float().reshape(1, -1, 1, 1)).to(x.dtype)

    for name in ("K tiles of 16", "K tiles of 64", "split K in 4, atomics"):
        yield Kernel(f"unfolded, {name}", unfolded(name))
    yield Kernel("tap by tap", direct)

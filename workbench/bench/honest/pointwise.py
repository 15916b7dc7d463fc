"""Pointwise ops: no order of accumulation, but approximations of functions, and roundings between steps."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from workbench.bench.honest.kernels import Function, Kernel, Op, Shapes, dishonest

_LOG2E = 1.4426950408889634
_KINDS = ("normal", "large", "small", "sorted", "outliers")
_HALF = ("bfloat16", "float16")


def ops() -> Iterator[Op]:
    """Activations, gates, rotations and chains."""
    one, two = (((31, 259),),), (((31, 259),) * 2,)
    yield _op("silu", F.silu, one, {"by exp2": lambda h: h / (1 + torch.exp2(-h * _LOG2E)), "by tanh": lambda h: 0.5 * h * (1 + torch.tanh(0.5 * h))})  # fmt: skip  # noqa: E501
    yield _op("gelu", F.gelu, one, {"by erf": _gelu, "by erfc": lambda h: 0.5 * h * torch.erfc(-h * 0.7071067811865476)})
    yield _op("gelu by tanh", lambda x: F.gelu(x, approximate="tanh"), one, {"by exp": _gelu_exp, "by tanh": _gelu_tanh})
    yield _op("sigmoid", torch.sigmoid, one, {"by exp2": lambda h: 1 / (1 + torch.exp2(-h * _LOG2E)), "by tanh": lambda h: 0.5 * torch.tanh(0.5 * h) + 0.5})  # fmt: skip  # noqa: E501
    yield _op("softplus", F.softplus, one, {"by log1p": lambda h: h.clamp_min(0) + torch.log1p(torch.exp(-h.abs()))})
    yield _op("gate", lambda x, y: F.silu(x) * y, two, {"by exp2": lambda h, g: h / (1 + torch.exp2(-h * _LOG2E)) * g, "by reciprocal": lambda h, g: h * (1 / (1 + torch.exp(-h))) * g})  # fmt: skip  # noqa: E501
    yield _op("difference over root", lambda x, y: (x - y) / torch.sqrt(x * x + y * y + 1), two, {"by rsqrt": lambda h, g: (h - g) * torch.rsqrt(h * h + g * g + 1)})  # fmt: skip  # noqa: E501
    yield _op("rotation", _rotated, two, {"in single precision": lambda h, g: h * torch.cos(g) - g * torch.sin(h)}, kinds=("normal", "small", "sorted"))  # fmt: skip  # noqa: E501
    yield _op("mish", F.mish, one, {"by log1p": lambda h: h * torch.tanh(torch.log1p(torch.exp(h.clamp_max(30))).where(h < 30, h))})


def _op(name: str, reference: Function, shapes: Shapes, ways: dict[str, Function], kinds: tuple[str, ...] = _KINDS) -> Op:
    kernels = [Kernel(way, _wide(call)) for way, call in ways.items()]
    kernels.append(Kernel("composed", reference))
    return Op(name, reference, shapes, (*kernels, *dishonest(reference)), kinds=kinds)


def _wide(call: Function) -> Function:
    return lambda *x: call(*(item.float() for item in x)).to(x[0].dtype)


def _gelu(h: Tensor) -> Tensor:
    return 0.5 * h * (1 + torch.erf(h * 0.7071067811865476))


def _gelu_tanh(h: Tensor) -> Tensor:
    return 0.5 * h * (1 + torch.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))


def _gelu_exp(h: Tensor) -> Tensor:
    inner = 0.7978845608028654 * (h + 0.044715 * h * h * h)
    return h / (1 + torch.exp(-2 * inner))


def _rotated(x: Tensor, y: Tensor) -> Tensor:
    return (x.float() * torch.cos(y.float()) - y.float() * torch.sin(x.float())).to(x.dtype)

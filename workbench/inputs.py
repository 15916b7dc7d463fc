"""From (spec, seed) to tensors: the one generator.

Judge and worker both call `make_inputs`, so that neither has to send tensors to the other. The same specs, seed, device and torch build
give the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.task import InputSpec

if TYPE_CHECKING:
    import torch


def make_inputs(specs: Sequence[InputSpec], seed: int, device: str = "cpu") -> list[Any]:
    """Draws every argument: tensors with the spec's shape, dtype and strides on `device`, Python values as they are.

    Each input has a stream of its own, derived from the seed and its position, so that changing one spec leaves the others.

    Raises:
        ValueError: a spec of kind ``bytes`` that comes without its content.
    """
    return [make_input(spec, stream_seed(seed, position), device) for position, spec in enumerate(specs)]


def stream_seed(seed: int, position: int) -> int:
    """The seed of one input's stream: 63 bits."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{position}".encode()).digest()[:8], "big") >> 1


def make_input(spec: InputSpec, seed: int, device: str = "cpu") -> Any:
    """One argument, drawn from a stream of its own."""
    import torch

    if not spec.is_tensor:
        return spec.values.value
    dtype = getattr(torch, spec.dtype)
    generator = torch.Generator(device=device).manual_seed(seed)
    # An expanded dimension (stride 0) repeats one element: draw it once and let the strides repeat it.
    shape = [1 if stride == 0 and size > 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True)]
    values = _draw(spec, shape, dtype, generator, device)
    tensor = torch.empty_strided(spec.shape, spec.strides, dtype=dtype, device=device)
    target = tensor.as_strided(shape, spec.strides)
    target.copy_(values)
    return tensor


def _draw(spec: InputSpec, shape: list[int], dtype: torch.dtype, generator: torch.Generator, device: str) -> torch.Tensor:
    import torch

    kind, args = spec.values.kind, spec.values.args

    def normal() -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device) * args.get("std", 1.0) + args.get("mean", 0.0)

    def uniform() -> torch.Tensor:
        return torch.rand(shape, generator=generator, device=device)

    if kind == "normal":
        return normal()
    if kind == "uniform":
        lo, hi = args.get("lo", 0.0), args.get("hi", 1.0)
        return uniform() * (hi - lo) + lo
    if kind == "positive":
        return normal().abs().mul(args.get("scale", 1.0)).add(1e-3 * args.get("scale", 1.0))
    if kind == "probabilities":
        return torch.softmax(normal(), dim=int(args.get("dim", -1)))
    if kind == "integers":
        lo, hi = int(args["lo"]), int(args["hi"])
        return torch.randint(lo, max(hi, lo + 1), shape, generator=generator, device=device)
    if kind == "permutation":
        return uniform().argsort(dim=-1) if shape else torch.zeros(shape, device=device)
    if kind == "mask":
        chosen = uniform() < args.get("p", 0.5)
        if "off" in args:  # an additive mask, such as 0 and -inf
            return torch.where(chosen, args.get("on", 0.0), args["off"])
        return chosen
    if kind == "one_hot":
        dim = int(args.get("dim", -1))
        picked = uniform().argmax(dim=dim, keepdim=True)
        return torch.zeros(shape, device=device).scatter_(dim, picked, 1.0)
    if kind == "triangular":
        values = normal()
        return values.tril() if args.get("lower", 1.0) else values.triu()
    if kind == "bytes" and isinstance(spec.values.value, str):
        return _content(spec.values.value, dtype, shape).to(device)
    if kind == "scalar":
        return torch.full(shape, spec.values.value, dtype=dtype, device=device)
    raise ValueError(f"input {spec.name!r}: its content has to be sent, no generator describes it")


def _content(text: str, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """Content in base64: the elements in order, expanded dimensions once."""
    import base64

    import torch

    data = bytearray(base64.b64decode(text))
    wide = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    return (wide != 0 if dtype is torch.bool else wide.view(dtype)).reshape(shape)

"""One number for a tensor's exact content, the same on every device, made without moving it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch

_CHUNK = 1 << 22
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, so that every element's weight is odd and no change of one element is lost


def of_tensor(tensor: torch.Tensor) -> int:
    """A 64-bit sum of the elements' bits, weighted by place, in wrapping integer arithmetic. Strides don't matter."""
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.element_size())
    flat = tensor.detach().contiguous().view(-1)
    if bits is None:
        flat, bits = flat.view(torch.uint8), torch.uint8
    flat = flat.view(bits)
    total = 0
    for start in range(0, flat.numel(), _CHUNK):
        part = flat[start : start + _CHUNK].to(torch.int64)
        place = torch.arange(start, start + part.numel(), device=part.device)
        total += int((part * (place * _MIX * 2 + 1)).sum())
    return int((total + flat.numel()) & ((1 << 64) - 1))


def of_inputs(inputs: Sequence[Any]) -> str:
    """A short hash of a list of arguments: what the judge sends so that a worker can tell that it drew the same."""
    parts = [
        f"{item.dtype}{tuple(item.shape)}{of_tensor(item):x}" if isinstance(item, torch.Tensor) else repr(item) for item in inputs
    ]  # fmt: skip
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]

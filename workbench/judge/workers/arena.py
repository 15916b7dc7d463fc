"""Memory with margins and poison: where a worker puts inputs, and what it hands out for ``torch.empty``.

A kernel without a mask reads or writes past its tensor. Here it lands in a margin: what it reads is poison and shows in the result, and
what it writes is found afterwards. The same poison fills uninitialised memory, so an element that no kernel writes can't be right by
luck, least of all because a freed block still holds an earlier result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from workbench.judge.emulation.memory import set_inner

MARGIN = 64 << 10
"""Bytes on each side of every tensor."""

POISONS: Mapping[str, int] = {"nan": 0xFF, "large": 0x5A, "other": 0xDA}
"""The byte that fills everything. 0xFF reads as NaN in every floating dtype and as -1 in integers; 0x5A as a large number in most,
0xDA as a negative one."""

_EMPTY: tuple[Callable[..., Any], ...] = (
    torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided,
)  # fmt: skip


class Arena:
    """Hands out tensors inside of margins and looks after the margins."""

    def __init__(self, poison: str) -> None:
        self.poison = poison
        self._blocks: list[tuple[str, torch.Tensor, int, int]] = []

    def place(self, tensor: torch.Tensor, name: str = "", shift: int = 0) -> torch.Tensor:
        """A tensor of the same shape, dtype, strides and content, with margins around it, `shift` elements off its alignment."""
        placed = self.empty(tensor.shape, tensor.stride(), tensor.dtype, tensor.device, name, shift)
        # Through the span of memory, not elementwise: expanded dimensions repeat one element.
        span = _span(tensor.shape, tensor.stride())
        if span:
            torch.as_strided(placed, (span,), (1,)).copy_(torch.as_strided(tensor, (span,), (1,)))
        return placed

    def empty(
        self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device, name: str = "", shift: int = 0
    ) -> torch.Tensor:  # fmt: skip
        """A tensor full of poison, with margins of poison."""
        with torch._C.DisableTorchFunction():
            itemsize = torch.empty((), dtype=dtype).element_size()
            start, size = MARGIN + shift * itemsize, _span(shape, strides) * itemsize
            padded = -(-size // 512) * 512 + shift * itemsize
            padded = -(-padded // 8) * 8
            block = torch.full((padded + 2 * MARGIN,), POISONS[self.poison], dtype=torch.uint8, device=device)
            if dtype is torch.bool:
                block[start : start + size] = 1
            self._blocks.append((name, block, start, size))
            usable = block[start : start + (padded + MARGIN) // itemsize * itemsize]
            made = torch.as_strided(usable.view(dtype), tuple(shape), tuple(strides))
            if device.type == "cpu":
                set_inner(made, size)  # the interpreter tells the very access that leaves it
            return made

    def broken(self) -> str:
        """Which tensor had something written beside it; empty if none."""
        with torch._C.DisableTorchFunction():
            for name, block, start, size in self._blocks:
                for side, margin in (("before", block[:start]), ("behind", block[start + size :])):
                    if bool((margin != POISONS[self.poison]).any()):
                        return f"{side} {name or 'memory of its own'}"
        return ""


class PoisonedEmpty(TorchFunctionMode):  # type: ignore[misc]
    """While entered, ``torch.empty`` and its relatives come from the arena."""

    def __init__(self, arena: Arena) -> None:
        super().__init__()
        self.arena = arena

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        plain = func in _EMPTY and isinstance(result, torch.Tensor) and result.layout is torch.strided and not result.is_pinned()
        if not plain or result.numel() == 0:
            return result
        return self.arena.empty(result.shape, result.stride(), result.dtype, result.device).requires_grad_(result.requires_grad)


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last of a strided tensor."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))

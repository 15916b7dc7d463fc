"""What the op really computes: the reference in double precision all the way through.

Converting the inputs alone is not enough, since a ``.float()`` inside drops back to single precision. So the reference runs under a mode
that maps every floating dtype to float64 at each ATen call.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from workbench.capture.references import Reference

_NARROW = frozenset({
    torch.float32, torch.float16, torch.bfloat16,
    *(getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz") if hasattr(torch, name)),
})  # fmt: skip


class Float64(TorchDispatchMode):  # type: ignore[misc]
    """Every floating tensor and dtype that an ATen call gets becomes float64."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler at the first call, which takes seconds; nothing is compiled in here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.view.dtype:
            raise NotImplementedError("it reinterprets the bits of a tensor")
        return tree_map(widen, func(*tree_map(widen, args), **tree_map(widen, kwargs or {})))


def widen(value: Any) -> Any:
    """A floating tensor as float64, a floating dtype as float64, anything else as it is."""
    if isinstance(value, torch.Tensor) and value.dtype in _NARROW:
        return value.double()
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


def run(reference: Reference, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The reference's outputs in float64 (integers stay integers).

    Raises:
        Exception: whatever an op raises that refuses float64.
    """
    with _doubled(reference) as call, Float64():
        return call(*[clone(widen(item)) for item in inputs])


def clone(item: Any) -> Any:
    """A copy with the same strides, so that a reference that works in place leaves the original."""
    if not isinstance(item, torch.Tensor):
        return item
    if any(stride == 0 and size > 1 for stride, size in zip(item.stride(), item.shape, strict=True)):
        return item.clone()
    return torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device=item.device).copy_(item)


@contextlib.contextmanager
def _doubled(reference: Reference) -> Iterator[Reference]:
    if reference.module is None:
        yield reference
    else:
        module = copy.deepcopy(reference.module).double()
        yield replace(reference, call=module, module=module)

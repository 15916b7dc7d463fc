"""Indices that argmax, topk and sort return: right if they point at the right values, whichever of several equal ones that is.

The values that were compared are computed ones. Where two of them are closer than their own rounding errors, either index is right; so
the operand is remembered from both runs, in the reference's precision and in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
# Where the indices stand in the result, and where the dimension stands in the arguments.
_INDEXING: dict[Any, tuple[int | None, int, str, int | None]] = {
    _aten.argmax.default: (None, 1, "dim", None), _aten.argmin.default: (None, 1, "dim", None),
    _aten.max.dim: (1, 1, "dim", None), _aten.min.dim: (1, 1, "dim", None),
    _aten.topk.default: (1, 2, "dim", -1), _aten.sort.default: (1, 1, "dim", -1), _aten.sort.stable: (1, 1, "dim", -1),
    _aten.argsort.default: (None, 1, "dim", -1), _aten.kthvalue.default: (1, 2, "dim", -1), _aten.median.dim: (1, 1, "dim", None),
}  # fmt: skip


@dataclass(frozen=True)
class Ties:
    """The operand that indices point into along `dim` (None: into the flat operand), and its own error."""

    operand: torch.Tensor
    dim: int | None
    slack: float
    distinct: bool

    def fault(self, got: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, str]:
        """Mask of the wrong indices, and why."""
        operand = self.operand.reshape(-1) if self.dim is None else self.operand
        dim = 0 if self.dim is None else self.dim
        size = operand.shape[dim]
        outside = (got < 0) | (got >= size)
        if bool(outside.any()):
            return outside, "indices outside of the dimension"
        apart = (self._values(operand, got, dim) - self._values(operand, expected, dim)).abs()
        wrong = apart > self.slack
        if not bool(wrong.any()) and self.distinct and got.dim() == operand.dim():
            ordered = got.sort(dim=dim).values
            if got.shape[dim] > 1 and bool(
                (ordered.narrow(dim, 1, got.shape[dim] - 1) == ordered.narrow(dim, 0, got.shape[dim] - 1)).any()
            ):
                return got == got, "an index is returned twice"
        return wrong, "indices of other values"

    def _values(self, operand: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
        if self.dim is None:
            return operand[index]
        squeezed = index.dim() < operand.dim()
        values = operand.gather(dim, index.unsqueeze(dim) if squeezed else index)
        return values.squeeze(dim) if squeezed else values


class watch_ties(TorchDispatchMode):  # type: ignore[misc]  # noqa: N801 - used as a function: ``with watch_ties() as seen``
    """Remembers what the index-giving ops of a run looked at."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[tuple[Any, torch.Tensor, torch.Tensor, int | None]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler at the first call, which takes seconds; nothing is compiled in here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if (how := _INDEXING.get(func)) is not None:
            place, position, name, default = how
            dim = args[position] if len(args) > position else kwargs.get(name, default)
            indices = result if place is None else result[place]
            self._seen.append((func, indices, args[0], None if dim is None else dim % max(1, args[0].dim())))
        return result

    def of(self, output: torch.Tensor, wide: watch_ties, wide_output: torch.Tensor) -> Ties | None:
        """How to compare `output`, if it is (a view of) the indices that one of the ops gave."""
        for number, (func, indices, operand, dim) in enumerate(self._seen):
            same = indices.data_ptr() == output.data_ptr() and indices.numel() == output.numel() and output.dtype == indices.dtype
            if not same or output.numel() == 0 or not operand.is_floating_point():
                continue
            slack = 0.0
            if number < len(wide._seen) and wide._seen[number][0] is func and wide._seen[number][2].shape == operand.shape:
                exact = wide._seen[number][2]
                error = (operand.double() - exact.double()).abs()
                own = float(error[torch.isfinite(error)].max()) if bool(torch.isfinite(error).any()) else 0.0
                slack = 2 * (4 * own + (8 * torch.finfo(operand.dtype).eps / 2 * float(exact.abs().max()) if own else 0.0))
            distinct = func in (_aten.topk.default, _aten.sort.default, _aten.sort.stable, _aten.argsort.default)
            return Ties(operand.detach().double(), dim, slack, distinct)
        return None

"""On which inputs a candidate is tried.

The Task's own shapes and values come first; the other sets are where shortcuts and forgotten masks show: neighbouring sizes, strided
views, other scales, and structure (sorted, a heavy tail at the end) that a sample or a prefix does not see.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from workbench.task import InputSpec, Task, Values

Structure = Literal["", "sorted", "ramp", "outliers", "equal", "whole"]


@dataclass(frozen=True)
class InputSet:
    """One kind of input.

    Attributes:
        name: for people and for the witness.
        own_shape: it has shapes that the Task lists; a candidate may raise on all others.
        structure: how the judge rearranges what it draws; such inputs are sent, since no generator describes them.
        optional: a candidate may raise on it, whatever its shape: not every kernel takes every layout.
        shift: elements by which each tensor is off its usual alignment, as slices of larger ones are.
    """

    name: str
    specs: tuple[InputSpec, ...]
    own_shape: bool = False
    structure: Structure = ""
    optional: bool = False
    shift: int = 0

    @property
    def shape(self) -> str:
        """``4×130``: the largest input's."""
        tensors = [spec for spec in self.specs if spec.is_tensor]
        return "×".join(map(str, max(tensors, key=lambda spec: math.prod(spec.shape)).shape)) if tensors else "no tensors"


def listed(task: Task, specs: Sequence[InputSpec]) -> bool:
    """Whether the Task names these shapes as ones that matter."""
    shapes = tuple(tuple(spec.shape) for spec in specs if spec.is_tensor)
    own = tuple(tuple(spec.shape) for spec in task.inputs if spec.is_tensor)
    return shapes == own or shapes in {tuple(tuple(shape) for shape in group) for group in task.shapes}


def scaled(specs: Sequence[InputSpec], factor: float) -> tuple[InputSpec, ...] | None:
    """The same inputs with larger or smaller values; None where no input has a scale."""
    return _mapped(
        specs,
        lambda args: {name: value * factor if name in ("mean", "std", "lo", "hi", "scale") else value for name, value in args.items()},
    )


def offset(specs: Sequence[InputSpec], by: float) -> tuple[InputSpec, ...] | None:
    """The same inputs around another mean."""
    return _mapped(
        specs, lambda args: args | {name: args.get(name, 0.0) + by for name in ("mean", "lo", "hi") if name in args or name == "mean"}
    )


def strided(specs: Sequence[InputSpec]) -> tuple[InputSpec, ...] | None:
    """The same inputs with gaps between rows, as slices of larger tensors have; None where no input has two dimensions."""
    out, changed = [], False
    for spec in specs:
        if (
            spec.is_tensor
            and spec.role == "input"
            and len(spec.shape) >= 2
            and min(spec.shape) > 0
            and spec.strides == contiguous(spec.shape)
        ):
            gap = 16
            strides = tuple(
                stride // spec.shape[-1] * (spec.shape[-1] + gap) if dim < len(spec.shape) - 1 else stride
                for dim, stride in enumerate(spec.strides)
            )
            spec, changed = dataclasses.replace(spec, strides=strides), True
        out.append(spec)
    return tuple(out) if changed else None


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def arrange(inputs: Sequence[Any], specs: Sequence[InputSpec], structure: Structure) -> list[Any]:
    """Rearranges drawn inputs in place: floating inputs of the reference, not its parameters or small tensors."""
    whole = structure == "whole"
    for item, spec in zip(inputs, specs, strict=True):
        plain = isinstance(item, torch.Tensor) and item.is_floating_point() and item.numel() > 1 and 0 not in item.stride()
        if not plain or spec.values.kind not in ("normal", "uniform", "positive"):
            continue
        if structure == "sorted":
            # Ascending along the last dimension, and its last hundredth a hundred times as large: what matters stands at the end.
            ordered = _wide(item).sort(dim=-1).values
            tail = max(1, item.shape[-1] // 100)
            ordered[..., -tail:] *= 100 if spec.values.kind == "normal" else 1
            item.copy_(ordered.clamp(-_most(item), _most(item)))
        elif structure == "outliers":
            flat = _wide(item)
            # Repeatable, so that a witness can be seen again; where they fall matters less than that they are there.
            generator = torch.Generator(device=item.device).manual_seed(item.numel())
            chosen = torch.rand(item.shape, device=item.device, generator=generator) < 0.01
            item.copy_(torch.where(chosen, flat * 100, flat).clamp(-_most(item), _most(item)))
        elif structure == "ramp":
            steps = torch.linspace(-1.0, 2.0, item.numel(), device=item.device).reshape(item.shape)
            item.copy_(steps * float(_wide(item).abs().amax()))
        elif structure == "whole":
            item.copy_(torch.where(_wide(item) > float(_wide(item).median()), 1.0, 0.0))
        elif structure == "equal":
            item.copy_(item[(0,) * item.dim()].clone().expand(item.shape))
    if whole:
        _make_large(inputs)
    return list(inputs)


def _make_large(inputs: Sequence[Any]) -> None:
    """Whole numbers of twelve bits in the largest input, ones and zeros in the others: sums that single precision holds exactly."""
    floats = [item for item in inputs if isinstance(item, torch.Tensor) and item.is_floating_point() and item.numel() > 1]
    if floats and floats[0].dtype is torch.float32:
        places = torch.arange(floats[0].numel(), device=floats[0].device).reshape(floats[0].shape)
        floats[0].mul_((places * 2654435761 % 2048 + 2048).to(torch.float32))


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """In a dtype that can hold `_most`: single precision, or double as it is."""
    return tensor if tensor.dtype is torch.float64 else tensor.float()


def _most(tensor: torch.Tensor) -> float:
    return float(torch.finfo(tensor.dtype).max) / 16


def _mapped(specs: Sequence[InputSpec], change: Any) -> tuple[InputSpec, ...] | None:
    out, changed = [], False
    for spec in specs:
        if (
            spec.role == "input"
            and spec.dtype in ("float32", "float16", "bfloat16", "float64")
            and spec.values.kind in ("normal", "uniform")
        ):
            defaults = {"mean": 0.0, "std": 1.0} if spec.values.kind == "normal" else {"lo": 0.0, "hi": 1.0}
            args = change(defaults | dict(spec.values.args))
            if spec.values.kind == "uniform":
                args.pop("mean", None)
            spec, changed = dataclasses.replace(spec, values=Values(spec.values.kind, args)), True
        out.append(spec)
    return tuple(out) if changed else None

"""The corpus: every op with its reference, its inputs, and the ways to compute it, honest and dishonest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Function = Callable[..., Any]
Shapes = tuple[tuple[tuple[int, ...], ...], ...]
"""Sets of shapes, each with one shape for every input."""


@dataclass(frozen=True)
class Kernel:
    """One way to compute an op. `honest` ones must pass, the others must not pass as exactly right on every input set."""

    name: str
    call: Function
    honest: bool = True
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Op:
    """An op of the corpus.

    Attributes:
        reference: in PyTorch, as a person writes it.
        shapes: of the inputs.
        integers: positions of inputs that are whole numbers, each with its upper bound.
        kinds: kinds of values that make sense: see `calibrate.VALUES`.
    """

    name: str
    reference: Function
    shapes: Shapes
    kernels: tuple[Kernel, ...] = field(default=(), repr=False)
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float16")
    kinds: tuple[str, ...] = ("normal", "large", "small", "offset", "outliers", "sorted", "equal")
    integers: tuple[tuple[int, int], ...] = ()


def corpus() -> tuple[Op, ...]:
    """All ops."""
    from workbench.bench.honest import pointwise, products, rows

    return (*rows.ops(), *products.ops(), *pointwise.ops())


def count(ops: Sequence[Op]) -> tuple[int, int]:
    """How many kernels there are, honest and dishonest: one for each op, way and dtype."""
    found = [kernel.honest for op in ops for dtype in op.dtypes for kernel in op.kernels if dtype in kernel.dtypes]
    return sum(found), len(found) - sum(found)


def dishonest(reference: Function, *, scaled: bool = True) -> Iterator[Kernel]:
    """What goes wrong with any op: arithmetic in bfloat16 where the op's is single, a common factor, a tail that is left out."""
    yield Kernel("bf16 arithmetic", lambda *x: _again(reference, x, torch.bfloat16), False, ("float32",))
    yield Kernel("fp16 inputs", lambda *x: _again(reference, x, torch.float16, back=True), False, ("float32",))
    if scaled:
        yield Kernel("0.4 % too large", lambda *x: (reference(*x).double() * 1.004).to(reference(*x).dtype), False)
    yield Kernel("last element zero", lambda *x: _without_tail(reference(*x)), False)


def _again(reference: Function, inputs: Sequence[Any], dtype: torch.dtype, *, back: bool = False) -> torch.Tensor:
    def narrow(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or not item.is_floating_point():
            return item
        return item.to(dtype).to(item.dtype) if back else item.to(dtype)

    wanted = reference(*inputs).dtype
    result: torch.Tensor = reference(*map(narrow, inputs))
    return result.to(wanted)


def _without_tail(output: torch.Tensor) -> torch.Tensor:
    result = output.clone(memory_format=torch.contiguous_format)
    result.view(-1)[-1] = 0
    return result

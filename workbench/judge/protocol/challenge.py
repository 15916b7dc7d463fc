"""The challenge after the acknowledgement: was the output there when the worker said so?

The driver that acknowledges shares its process with the candidate, so it could acknowledge early and compute when asked. So after each
timed call the judge reveals the seed of a fingerprint (two random-weight sums over all elements, and a few elements at random places) and
times the answer. A worker whose output is there needs no longer for it than one that does nothing. And the answer binds: bytes that are
handed over afterwards must give the very same fingerprint, and every fingerprint must fit the judge's own reference.

Where one ring asks for several calls, one of them is challenged, and a sum over each one's output is asked for before it is said which:
else who computes only what is asked for would save all the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from workbench.inputs import stream_seed

SAMPLES = 64
MOST_OUTPUTS = 5
"""Outputs with a fingerprint of their own; further ones are added to the sums of the last."""

NUMBERS = (2 + SAMPLES) * MOST_OUTPUTS
FACTOR, SLACK_US = 1.5, 20.0
"""How much longer than a worker that does nothing an answer may take."""


@dataclass(frozen=True)
class Print:
    """The fingerprint of one output: sums over rows and over columns with random weights, and the elements at random places."""

    sums: tuple[float, float]
    samples: tuple[float, ...]


def answer(outputs: Sequence[torch.Tensor], seed: int, samples: int = SAMPLES) -> list[float]:
    """The fingerprints of a call's outputs, one after the other, as plain numbers; for the worker and the judge alike.

    The same tensors on the same device give the same numbers, bit for bit.
    """
    parts: list[torch.Tensor] = []
    for number, output in enumerate(outputs):
        flat = _addable(output.detach().contiguous().view(-1))
        one, two = _sums(flat, stream_seed(seed, number))
        if number < MOST_OUTPUTS:
            parts += [torch.stack([one, two]), _samples(flat, stream_seed(seed, 1000 + number), samples)]
        else:
            parts[-2] = parts[-2] + torch.stack([one, two])
    found: list[float] = torch.cat(parts).tolist() if parts else []
    return found


def commit(calls: Sequence[Sequence[torch.Tensor]], seed: int) -> list[float]:
    """For each call of a ring the sum over its outputs with random weights: the first sums of their fingerprints, added up."""
    total: torch.Tensor | None = None
    for number, outputs in enumerate(zip(*calls, strict=True)):
        first = outputs[0]
        if any(output.shape != first.shape or output.dtype != first.dtype for output in outputs):
            raise ValueError("its outputs have another form from call to call")
        flat = _addable(torch.stack([output.detach().reshape(-1) for output in outputs]))
        sums = _row_sums(flat, stream_seed(seed, number))
        total = sums if total is None else total + sums
    found: list[float] = total.tolist() if total is not None else []
    return found


def prints(numbers: Sequence[float], outputs: int) -> list[Print]:
    """Sorts an answer by output."""
    size = 2 + SAMPLES
    return [
        Print((numbers[at], numbers[at + 1]), tuple(numbers[at + 2 : at + size]))
        for at in range(0, size * min(outputs, MOST_OUTPUTS), size)
    ]  # fmt: skip


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    """Equal number by number, NaNs included."""
    return len(one) == len(other) and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True))


def places(count: int, seed: int, samples: int = SAMPLES) -> list[int]:
    """Which elements of a tensor of `count` elements its samples are."""
    generator = torch.Generator().manual_seed(seed)
    found: list[int] = torch.randint(0, count, (samples,), generator=generator).tolist() if count else []
    return found


def sample_places(count: int, seed: int, number: int) -> list[int]:
    """The same, for output `number` of a call whose fingerprint has that seed."""
    return places(count, stream_seed(seed, 1000 + number))


def _samples(flat: torch.Tensor, seed: int, samples: int) -> torch.Tensor:
    if flat.numel() == 0:
        return torch.zeros(samples, dtype=torch.float64, device=flat.device)
    chosen = torch.tensor(places(flat.numel(), seed, samples), device=flat.device)
    return flat[chosen].double()


def _sums(flat: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One pass over the elements each: as rows with a weight a row, as columns with a weight a column."""
    count = flat.numel()
    if count == 0:
        zero = torch.zeros((), dtype=torch.float64, device=flat.device)
        return zero, zero
    rows, columns, weights = _fold(count, seed, flat.device)
    table, rest = flat[: rows * columns].view(rows, columns), flat[rows * columns :]
    dtype = wide(flat.dtype)
    left = rest.sum(dtype=dtype).double()
    return (
        (table.sum(1, dtype=dtype).double() * weights[:rows]).sum() + left,
        (table.sum(0, dtype=dtype).double() * weights[rows:]).sum() + left,
    )  # fmt: skip


def _row_sums(flat: torch.Tensor, seed: int) -> torch.Tensor:
    """The first of `_sums` for each row of (calls, elements), with the same weights."""
    count = flat.shape[1]
    if count == 0:
        return torch.zeros(len(flat), dtype=torch.float64, device=flat.device)
    rows, columns, weights = _fold(count, seed, flat.device)
    dtype = wide(flat.dtype)
    sums = flat[:, : rows * columns].reshape(-1, rows, columns).sum(2, dtype=dtype).double()
    return (sums * weights[:rows]).sum(1) + flat[:, rows * columns :].sum(1, dtype=dtype).double()


def _fold(count: int, seed: int, device: torch.device) -> tuple[int, int, torch.Tensor]:
    """Elements as rows and columns, and a weight for each row and then for each column."""
    columns = 1 << (count.bit_length() // 2)
    rows = count // columns
    generator = torch.Generator(device=device).manual_seed(seed)
    return rows, columns, torch.rand(rows + columns, generator=generator, device=device, dtype=torch.float64) - 0.5


def _addable(values: torch.Tensor) -> torch.Tensor:
    """Nothing adds up eight-bit floats."""
    return values.float() if values.is_floating_point() and values.element_size() == 1 else values


def wide(dtype: torch.dtype) -> torch.dtype:
    """What elements are added up in."""
    if dtype is torch.float64:
        return torch.float64
    return torch.float32 if dtype.is_floating_point else torch.int64

"""Ways to add up the last dimension in single precision, as kernels do. All are honest; `Sum` takes float32 and gives float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

Sum = Callable[[torch.Tensor], torch.Tensor]


def tree(x: torch.Tensor) -> torch.Tensor:
    """Halves added to halves, as a warp's shuffles do."""
    while (n := x.shape[-1]) > 1:
        half = n // 2
        front = x[..., :half] + x[..., half : 2 * half]
        x = torch.cat([front, x[..., 2 * half :]], dim=-1) if n % 2 else front
    return x[..., 0]


def lanes(count: int) -> Sum:
    """One accumulator per lane, a loop over the row, then a tree over the lanes: what a block does."""

    def add(x: torch.Tensor) -> torch.Tensor:
        tiles = _tiles(x, count)
        total = tiles[..., 0, :].clone()
        for step in range(1, tiles.shape[-2]):
            total = total + tiles[..., step, :]
        return tree(total)

    return add


def split(parts: int, *, shuffled: bool = False) -> Sum:
    """Each part a tree, then the parts one after the other, in any order where atomics add them."""

    def add(x: torch.Tensor) -> torch.Tensor:
        tiles = _tiles(x, -(-x.shape[-1] // parts))
        partial = tree(tiles)
        order = torch.randperm(partial.shape[-1], generator=torch.Generator().manual_seed(5)) if shuffled else range(partial.shape[-1])
        total = torch.zeros_like(partial[..., 0])
        for part in order:
            total = total + partial[..., int(part)]
        return total

    return add


def sequence(x: torch.Tensor) -> torch.Tensor:
    """One after the other: a program that has a row to itself."""
    total = torch.zeros_like(x[..., 0])
    for piece in x.unbind(-1):
        total = total + piece
    return total


def kahan(x: torch.Tensor) -> torch.Tensor:
    """In 64 lanes with the lost bits carried along."""
    tiles = _tiles(x, 64)
    total, lost = torch.zeros_like(tiles[..., 0, :]), torch.zeros_like(tiles[..., 0, :])
    for step in range(tiles.shape[-2]):
        corrected = tiles[..., step, :] - lost
        grown = total + corrected
        lost = (grown - total) - corrected
        total = grown
    return tree(total)


def pairs(x: torch.Tensor) -> torch.Tensor:
    """Neighbours added to neighbours."""
    while (n := x.shape[-1]) > 1:
        if n % 2:
            x = torch.cat([x, torch.zeros_like(x[..., :1])], dim=-1)
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def _tiles(x: torch.Tensor, width: int) -> torch.Tensor:
    steps = -(-x.shape[-1] // width)
    padded = torch.nn.functional.pad(x, (0, steps * width - x.shape[-1]))
    return padded.reshape(*x.shape[:-1], steps, width)


SUMS: Mapping[str, Sum] = {
    "tree": tree, "32 lanes": lanes(32), "256 lanes": lanes(256), "split in 8": split(8), "atomics of 32": split(32, shuffled=True),
    "in sequence": sequence, "Kahan": kahan, "pairs": pairs,
}  # fmt: skip

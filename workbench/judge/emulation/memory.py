"""What a launch may touch: the tensors that it was given, and nothing else.

Every pointer remembers the argument that it was made from, so that a read past the end of one tensor is told even where it lands inside
another. A tensor's reach is its storage: a view may be used as a base for the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from workbench.judge.emulation.unsupported import OutOfBoundsError


@dataclass(frozen=True)
class Region:
    """The memory behind one tensor argument. `start` and `end` bound its storage; `shape` is the argument's own."""

    name: str
    start: int
    end: int
    base: int
    itemsize: int
    shape: tuple[int, ...]
    nbytes: int


_INNER: dict[int, tuple[StorageWeakRef, int, int]] = {}
"""By the address of a storage. The address may be given to another storage later, of the same size even; so the storage itself is kept in
mind, without keeping it alive."""


def set_inner(tensor: torch.Tensor, nbytes: int) -> None:
    """Tells that of the tensor's storage only `nbytes` from the tensor's start on are its own: the rest are margins."""
    with torch._C.DisableTorchFunction():
        storage = tensor.untyped_storage()
        start = tensor.data_ptr()
        _INNER[storage.data_ptr()] = (StorageWeakRef(storage), start, start + nbytes)


class Memory:
    """The regions of one launch, and the check of each access against them."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.program: tuple[int, ...] = (0, 0, 0)
        self.regions: list[Region] = []

    def add(self, name: str, tensor: torch.Tensor) -> int:
        """Registers an argument; its number is what pointers carry as their origin."""
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0]
            start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            if (inner := _INNER.get(start)) is not None and not inner[0].expired():
                start, end = inner[1:]
            region = Region(
                name=name,
                start=start,
                end=end,
                base=tensor.data_ptr(),
                itemsize=tensor.element_size(),
                shape=tuple(tensor.shape),
                nbytes=int(np.prod(sizes, dtype=np.int64)) * tensor.element_size(),
            )
        self.regions.append(region)
        return len(self.regions) - 1

    def check(self, pointers: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: int | None, verb: str) -> None:
        """Raises where an unmasked pointer lies outside.

        Args:
            pointers: addresses, uint64, any shape.
            mask: which of them are used; None for all. It has the pointers' shape, or broadcasts to it.
            itemsize: bytes at each.
            origin: number of the region they came from; None where that got lost, then any region will do.
            verb: ``reads`` or ``writes``.

        Raises:
            OutOfBoundsError: it names the kernel, the argument and how many elements off it is.
        """
        if pointers.size == 0:
            return
        if origin is None:
            self._check_anywhere(pointers, mask, itemsize, verb)
            return
        region = self.regions[origin]
        room = region.end - region.start - itemsize
        # Unsigned: what lies before the start wraps to a huge distance.
        distance = pointers - np.uint64(region.start)
        outside = distance > np.uint64(room) if room >= 0 else np.ones(pointers.shape, bool)
        if mask is not None:
            outside = outside & mask
        if outside.any():
            self._refuse(np.broadcast_to(pointers, outside.shape)[outside], region, itemsize, verb)

    def _check_anywhere(self, pointers: np.ndarray, mask: np.ndarray | None, itemsize: int, verb: str) -> None:
        outside = np.ones(pointers.shape, bool)
        for region in self.regions:
            outside &= (pointers < np.uint64(region.start)) | (pointers > np.uint64(max(region.end - itemsize, 0)))
        if mask is not None:
            outside = outside & mask
        if outside.any():
            bad = np.broadcast_to(pointers, outside.shape)[outside]
            if not self.regions:
                raise OutOfBoundsError(f"kernel {self.kernel} {verb} memory but was given no tensor", kernel=self.kernel)
            nearest = min(self.regions, key=lambda region: min(abs(int(bad[0]) - region.start), abs(int(bad[0]) - region.end)))
            self._refuse(bad, nearest, itemsize, verb)

    def _refuse(self, bad: np.ndarray, region: Region, itemsize: int, verb: str) -> None:
        lowest, highest = int(bad.min()), int(bad.max())
        past = highest + itemsize - region.end
        before = region.start - lowest
        after = past >= before
        # Pointers wrap at 2^64: a negative offset from a small tensor still is "before".
        elements = -(-(past if after else before) // itemsize)
        where = "past the end" if after else "before the start"
        shape = "×".join(map(str, region.shape)) or "scalar"
        raise OutOfBoundsError(
            f"kernel {self.kernel} {verb} {elements} element{'s' if elements != 1 else ''} {where} of {region.name} ({shape}) "
            f"in program {self.program}: a mask is missing or wrong",
            kernel=self.kernel,
            argument=region.name,
            elements=elements,
            program=self.program,
        )


def origin_of(*handles: Any) -> int | None:
    """The region number that the first pointer among the handles carries."""
    for handle in handles:
        origin = getattr(handle, "origin", None)
        if origin is not None:
            return int(origin)
    return None

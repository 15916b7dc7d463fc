"""The memory that judge and worker share: where output bytes go, because a pipe would be slow and CUDA's handles don't cross sandboxes.

It is a sealed memory file: neither side can change its size, so a worker can't make the judge's mapping fault. The judge copies what it
reads, once, and never looks at the same bytes twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Sequence

import torch

from workbench.judge.protocol.gpu import forget_error

PAGE = 4096
"""The first page is the doorbell's, see `doorbell`; tensors start behind it."""

_ALIGN = 256
_filler: torch.Tensor | None = None
_F_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1033, 1, 2, 4


class SharedFile:
    """A memory file of fixed size, mapped. The judge creates it; the worker opens it by its descriptor."""

    def __init__(self, file: int, size: int) -> None:
        self.file = file
        self.size = size
        self.memory = mmap.mmap(file, size)
        self._pinned = 0

    @classmethod
    def create(cls, size: int) -> SharedFile:
        """A new file of `size` bytes, all zero; pages take memory only once they are written."""
        file = os.memfd_create("outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        fcntl.fcntl(file, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_SEAL)
        return cls(file, size)

    def pin(self, nbytes: int) -> None:
        """Makes the first `nbytes` known to CUDA, so that the card reads and writes them itself: forty times as fast. Where it can't, not.

        Both sides do it for themselves, ahead of the first use, since it takes tens of milliseconds.
        """
        length = min(self.size, -(-nbytes // PAGE) * PAGE)
        if length > 0 and not self._pinned and torch.cuda.is_available():
            if int(torch.cuda.cudart().cudaHostRegister(self._bytes(0, 1).data_ptr(), length, 0)) == 0:
                self._pinned = length
            else:
                forget_error()

    def close(self) -> None:
        if self._pinned:
            torch.cuda.cudart().cudaHostUnregister(self._bytes(0, 1).data_ptr())
            self._pinned = 0
        with contextlib.suppress(BufferError):  # a view of it is still about: the mapping goes with the last one
            self.memory.close()
        os.close(self.file)

    def clear(self, nbytes: int | None = None) -> None:
        """Forgets `nbytes` behind the doorbell's page, or all, so that only what is written now can be read."""
        end = self.size if nbytes is None else min(self.size, (-(-nbytes // PAGE) + 2) * PAGE)
        kept = min(end, self._pinned)
        if kept > PAGE:  # pages that CUDA knows have to stay
            self._bytes(PAGE, kept - PAGE).copy_(_forgotten(kept - PAGE))
        if end > max(kept, PAGE):
            self.memory.madvise(mmap.MADV_REMOVE, max(kept, PAGE), end - max(kept, PAGE))

    def read(self, offset: int, shape: Sequence[int], dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
        """A private copy of a contiguous tensor, on `device`. For the judge: `shape` and `dtype` are its own, never the worker's word."""
        direct = device != "cpu" and self._pinned > 0
        out = torch.empty(tuple(shape), dtype=dtype, device=device if direct else "cpu")
        nbytes = out.numel() * out.element_size()
        if offset + nbytes > self.size:
            raise ValueError("the shared memory is shorter than the tensor")
        if nbytes and direct:
            flat = out.view(-1).view(torch.uint8)
            for start, end in self._parts(offset, nbytes):
                flat[start - offset : end - offset].copy_(self._bytes(start, end - start))
        elif nbytes:
            view = memoryview(out.view(-1).view(torch.uint8).numpy())
            done = 0
            while done < nbytes:
                got = os.preadv(self.file, [view[done:]], offset + done)
                if got <= 0:
                    raise ValueError("the shared memory is shorter than the tensor")
                done += got
        return out.to(device)

    def write(self, offset: int, tensor: torch.Tensor) -> None:
        """Puts a tensor's elements there, contiguous, from any device."""
        nbytes = tensor.numel() * tensor.element_size()
        if nbytes == 0:
            return
        if offset < PAGE or offset + nbytes > self.size:
            raise ValueError("the tensor does not fit into the shared memory")
        flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
        for start, end in self._parts(offset, nbytes):
            self._bytes(start, end - start).copy_(flat[start - offset : end - offset])

    def _parts(self, offset: int, nbytes: int) -> list[tuple[int, int]]:
        """A range cut where the part that CUDA knows ends, since no single copy may cross that."""
        end = offset + nbytes
        if offset < self._pinned < end:
            return [(offset, self._pinned), (self._pinned, end)]
        return [(offset, end)]

    def _bytes(self, offset: int, count: int) -> torch.Tensor:
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=count, offset=offset)


def _forgotten(count: int) -> torch.Tensor:
    """Bytes that mean nothing, on the card: from there they are written faster than by the processor."""
    global _filler
    if _filler is None or _filler.numel() < count:
        _filler = torch.full((count,), 0x5A, dtype=torch.uint8, device="cuda")
    return _filler[:count]


def layout(sizes: Sequence[int]) -> list[int]:
    """Offsets for tensors of so many bytes, one after the other."""
    offsets, at = [], PAGE
    for size in sizes:
        offsets.append(at)
        at += -(-size // _ALIGN) * _ALIGN
    return offsets


def needed(sizes: Sequence[int]) -> int:
    """Bytes of a file that holds tensors of those sizes."""
    return PAGE + sum(-(-size // _ALIGN) * _ALIGN for size in sizes)

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

PAGE = 4096
"""The first page is the doorbell's, see `doorbell`; tensors start behind it."""

_ALIGN = 256
_FORGOTTEN = 0x5A
_F_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1033, 1, 2, 4


class SharedFile:
    """A memory file of fixed size, mapped. The judge creates it; the worker opens it by its descriptor."""

    def __init__(self, file: int, size: int) -> None:
        self.file = file
        self.size = size
        self.memory = mmap.mmap(file, size)
        self._pinned = False

    @classmethod
    def create(cls, size: int) -> SharedFile:
        """A new file of `size` bytes, all zero; pages take memory only once they are written."""
        file = os.memfd_create("outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        fcntl.fcntl(file, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_SEAL)
        return cls(file, size)

    def pin(self) -> None:
        """Makes the mapping known to CUDA, so that the card reads and writes it itself: forty times as fast. Where that fails, it stays.

        Both sides do it for themselves, ahead of the first use, since it takes tens of milliseconds.
        """
        if not self._pinned and torch.cuda.is_available():
            status = torch.cuda.cudart().cudaHostRegister(self._address(), self.size, 0)
            self._pinned = int(status) == 0

    def close(self) -> None:
        if self._pinned:
            torch.cuda.cudart().cudaHostUnregister(self._address())
            self._pinned = False
        with contextlib.suppress(BufferError):  # a view of it is still about: the mapping goes with the last one
            self.memory.close()
        os.close(self.file)

    def clear(self, nbytes: int | None = None) -> None:
        """Forgets `nbytes` behind the doorbell's page, or all, so that only what is written now can be read."""
        length = self.size - PAGE if nbytes is None else min(self.size - PAGE, -(-nbytes // PAGE + 1) * PAGE)
        if not self._pinned:
            self.memory.madvise(mmap.MADV_REMOVE, PAGE, length)
        else:  # the pages that CUDA knows have to stay
            torch.frombuffer(self.memory, dtype=torch.uint8, count=length, offset=PAGE).fill_(_FORGOTTEN)

    def read(self, offset: int, shape: Sequence[int], dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
        """A private copy of a contiguous tensor, on `device`. For the judge: `shape` and `dtype` are its own, never the worker's word."""
        if device != "cpu" and self._pinned:
            return self._read_onto(device, offset, tuple(shape), dtype)
        out = torch.empty(tuple(shape), dtype=dtype)
        nbytes = out.numel() * out.element_size()
        if nbytes:
            view = memoryview(out.view(-1).view(torch.uint8).numpy())
            done = 0
            while done < nbytes:
                got = os.preadv(self.file, [view[done:]], offset + done)
                if got <= 0:
                    raise ValueError("the shared memory is shorter than the tensor")
                done += got
        return out.to(device)

    def _read_onto(self, device: str, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        out = torch.empty(shape, dtype=dtype, device=device)
        if nbytes := out.numel() * out.element_size():
            if offset + nbytes > self.size:
                raise ValueError("the shared memory is shorter than the tensor")
            out.view(-1).view(torch.uint8).copy_(torch.frombuffer(self.memory, dtype=torch.uint8, count=nbytes, offset=offset))
        return out

    def _address(self) -> int:
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=1).data_ptr()

    def write(self, offset: int, tensor: torch.Tensor) -> None:
        """Puts a tensor's elements there, contiguous, from any device."""
        nbytes = tensor.numel() * tensor.element_size()
        if nbytes == 0:
            return
        if offset < PAGE or offset + nbytes > self.size:
            raise ValueError("the tensor does not fit into the shared memory")
        place = torch.frombuffer(self.memory, dtype=torch.uint8, count=nbytes, offset=offset)
        place.copy_(tensor.detach().contiguous().view(-1).view(torch.uint8))


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

"""What only a CUDA device needs: events, its L2, and the lock that keeps two judges from timing on one card at once."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

_LEAST_FLUSH = 256 << 20
_LOOK_SECONDS = 0.001
_PERSISTING_L2_LIMIT = 6  # cudaLimitPersistingL2CacheSize


class EventStopwatch:
    """Times by events on the current stream, behind a lead that lets all launches of a call queue up first."""

    def __init__(self) -> None:
        self._cycles_per_us = _clock_mhz()
        self._begin = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def lead(self, us: float) -> None:
        if us > 0:
            torch.cuda._sleep(int(us * self._cycles_per_us))

    def start(self, flush: torch.Tensor | None) -> None:
        if flush is not None:
            flush.zero_()
        self._begin.record()

    def end(self) -> None:
        self._end.record()

    def read(self) -> float:
        torch.cuda.synchronize()
        return float(self._begin.elapsed_time(self._end)) * 1e3


def flush_bytes() -> int:
    """Bytes that have to be written so that nothing of a call's inputs is left in the L2: twice its size, 256 MiB at least."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return max(_LEAST_FLUSH, 2 * int(getattr(properties, "L2_cache_size", 0)))


def _clock_mhz() -> float:
    """The card's highest clock; a lead made from it is never shorter than asked for."""
    rate = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "clock_rate", 0)
    return rate / 1e3 if rate else 2000.0


def forget_persisting_l2() -> None:
    """Gives back what a call may have pinned in the L2, and lets it pin nothing more. Does nothing where the runtime is not found."""
    runtime = _cuda_runtime()
    if runtime is not None:
        refused = runtime.cudaDeviceSetLimit(_PERSISTING_L2_LIMIT, ctypes.c_size_t(0))
        if refused or runtime.cudaCtxResetPersistingL2Cache():
            forget_error()  # a card that can't pin anything


def forget_error() -> None:
    """Takes back the runtime's note of a call that failed and may fail: else PyTorch blames the next kernel for it."""
    runtime = _cuda_runtime()
    if runtime is not None:
        runtime.cudaGetLastError()


@functools.cache
def _cuda_runtime() -> Any:
    """The CUDA runtime that this process has loaded."""
    with contextlib.suppress(OSError), Path("/proc/self/maps").open() as maps:
        for line in maps:
            path = line.split()[-1]
            if "libcudart" in path and path.startswith("/"):
                with contextlib.suppress(OSError):
                    runtime = ctypes.CDLL(path)
                    if hasattr(runtime, "cudaCtxResetPersistingL2Cache"):
                        return runtime
    return None


def have_others_wait() -> None:
    """Two other streams wait for what is in the current one, and it then for them."""
    now = torch.cuda.current_stream()
    for side in _others():
        side.wait_stream(now)
        with torch.cuda.stream(side):
            torch.cuda._sleep(1)
    for side in _others():
        now.wait_stream(side)


@functools.cache
def _others() -> tuple[torch.cuda.Stream, ...]:
    return torch.cuda.Stream(), torch.cuda.Stream()


def held_by_others() -> tuple[int, int]:
    """Bytes of the card that neither are free nor this process', and all of its bytes."""
    free, total = torch.cuda.mem_get_info()
    return max(0, total - free - torch.cuda.memory_reserved()), total


def uuid() -> str:
    """The card's own id."""
    return str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", torch.cuda.current_device()))


@contextlib.contextmanager
def lock(name: str, timeout: float, *, shared: bool = False) -> Iterator[bool]:
    """Holds the machine-wide lock of a card. Yields False, and does not hold it, if others do not give it up in time.

    Who times, holds it alone; who only makes the card busy (a correctness call, a worker that warms up) shares it with others of that
    kind, and lets all go first who wait to time: each of them would have to wait for the card to become quiet again. That keeps nobody out
    for ever, since who has timed has to share next.
    """
    deadline = time.monotonic() + timeout
    gate, file = _open(f"{name}-gate"), _open(name)
    try:
        if shared:
            held = _share(gate, file, deadline)
        else:  # stands in the gate, beside others who wait to time
            held = _take(gate, fcntl.LOCK_SH, deadline) and _take(file, fcntl.LOCK_EX, deadline)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield held
    finally:
        os.close(gate)
        os.close(file)


def _share(gate: int, file: int, deadline: float) -> bool:
    """Shares the card once nobody times, and nobody stands in the gate to do so."""
    while not _take(gate, fcntl.LOCK_EX, 0.0) or not _take(file, fcntl.LOCK_SH, 0.0):
        fcntl.flock(gate, fcntl.LOCK_UN)
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _take(file: int, how: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)


def _open(name: str) -> int:
    """A file to lock, which need not be one's own."""
    path = Path(tempfile.gettempdir()) / f"workbench-gpu-{name}.lock"
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    return os.open(path, flags | os.O_CREAT, 0o644)

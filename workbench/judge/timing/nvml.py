"""What the card says of itself: clocks, temperature, whether it slows itself down, and who else uses it.

Read only, by ``nvidia-ml-py`` where that is installed; elsewhere there are no readings, and it is said so. Nothing is ever set.
"""

from __future__ import annotations

import contextlib
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_IDLE = 0x1
"""A card that has nothing to do lowers its clocks; that is no reason to distrust a time."""


@dataclass(frozen=True)
class Reading:
    """Clocks in MHz, temperature in °C, and the bits of why the clocks are lower than they could be."""

    sm_mhz: int
    memory_mhz: int
    celsius: int
    reasons: int

    def __str__(self) -> str:
        return f"{self.sm_mhz}/{self.memory_mhz} MHz, {self.celsius} °C"


class Gauge:
    """Reads one card. `mend` says why there are no readings, where there are none."""

    def __init__(self, uuid: str) -> None:
        self.mend = ""
        self._handle: Any = None
        self._nvml = _library()
        if self._nvml is None:
            self.mend = "clocks not read: pip install nvidia-ml-py"
            return
        try:
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        except self._nvml.NVMLError as error:
            self.mend = f"clocks not read: {error}"

    def read(self) -> Reading | None:
        """One reading, or None where there is none to be had."""
        if self._handle is None:
            return None
        nvml = self._nvml
        with contextlib.suppress(nvml.NVMLError):
            return Reading(
                nvml.nvmlDeviceGetClockInfo(self._handle, nvml.NVML_CLOCK_SM),
                nvml.nvmlDeviceGetClockInfo(self._handle, nvml.NVML_CLOCK_MEM),
                nvml.nvmlDeviceGetTemperature(self._handle, nvml.NVML_TEMPERATURE_GPU),
                nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle) & ~_IDLE,
            )
        return None

    def reasons(self) -> int | None:
        """Why the clocks are lower than they could be, as bits; one call, so that it can be asked between any two blocks."""
        if self._handle is None:
            return None
        with contextlib.suppress(self._nvml.NVMLError):
            return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)) & ~_IDLE
        return None

    def others(self) -> int:
        """Processes on the card that are not of this program."""
        if self._handle is None:
            return 0
        with contextlib.suppress(self._nvml.NVMLError):
            return sum(not _ours(found.pid) for found in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        return 0


def under_mps() -> bool:
    """Whether CUDA's multi-process service runs, where a fault of one process is a fault of all, and work of several runs at once."""
    for place in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if place.read_text().startswith("nvidia-cuda-mps"):
                return True
    return False


def _ours(pid: int) -> bool:
    if pid == os.getpid():
        return True
    with contextlib.suppress(OSError):
        return b"workbench" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return True  # of another user or namespace, or gone: nothing is known of it


@functools.cache
def _library() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml

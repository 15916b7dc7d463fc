"""The hardware that kernels are built for, and its limits: one table, and every modelled figure comes from it.

`bandwidth` and `peaks` are what good kernels reach, not what datasheets promise. Those of ``cuda:90`` are measured on an H200 (torch
2.11); the others are the vendors' figures times the share that an H200 reaches of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.errors import MisuseError


@dataclass(frozen=True)
class Target:
    """One kind of GPU.

    Attributes:
        name: ``backend:arch``, such as ``cuda:90``.
        gpu: the card that the figures stand for.
        multiprocessors: SMs or CUs.
        bandwidth: bytes/s that a copy reaches, read plus written.
        l2_bandwidth: bytes/s between L2 and the multiprocessors.
        l2_bytes: size of the L2.
        peaks: FLOP/s per operand dtype; ``float32`` is without tensor cores, ``tf32`` with.
        shared_bytes: shared memory that one multiprocessor has; `block_shared_bytes`: that one program can have.
        registers: 32-bit registers of one multiprocessor.
        warps: resident warps of one multiprocessor; `warp_size` threads each; `blocks`: resident programs.
        launch_us: the cost of one launch in a stream of launches.
        latency_us: from a kernel's start to its end when it does next to nothing.
    """

    name: str
    gpu: str
    multiprocessors: int
    bandwidth: float
    l2_bandwidth: float
    l2_bytes: int
    peaks: Mapping[str, float]
    shared_bytes: int
    block_shared_bytes: int
    registers: int = 65536
    warps: int = 64
    warp_size: int = 32
    blocks: int = 32
    launch_us: float = 1.0
    latency_us: float = 2.0

    @property
    def backend(self) -> str:
        return self.name.split(":")[0]

    @property
    def arch(self) -> int | str:
        """What Triton's ``GPUTarget`` takes: an int for CUDA, a string for HIP."""
        arch = self.name.split(":")[1]
        return int(arch) if self.backend == "cuda" else arch

    def peak(self, dtype: str) -> float:
        """FLOP/s for products of `dtype` operands."""
        return self.peaks.get(dtype, self.peaks["float32"])


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            name="cuda:90", gpu="NVIDIA H200", multiprocessors=132, bandwidth=4.30e12, l2_bandwidth=5.8e12, l2_bytes=60 << 20,
            peaks={
                "float64": 30e12, "float32": 51e12, "tf32": 360e12, "float16": 740e12, "bfloat16": 740e12,
                "float8_e4m3fn": 1400e12, "float8_e5m2": 1400e12, "int8": 1400e12,
            },
            shared_bytes=228 << 10, block_shared_bytes=227 << 10,
        ),
        Target(
            name="cuda:80", gpu="NVIDIA A100 80GB", multiprocessors=108, bandwidth=1.75e12, l2_bandwidth=4.5e12, l2_bytes=40 << 20,
            peaks={
                "float64": 9e12, "float32": 18e12, "tf32": 130e12, "float16": 260e12, "bfloat16": 260e12, "int8": 520e12,
            },
            shared_bytes=164 << 10, block_shared_bytes=163 << 10,
        ),
        Target(
            name="hip:gfx942", gpu="AMD Instinct MI300X", multiprocessors=304, bandwidth=4.3e12, l2_bandwidth=9.0e12, l2_bytes=4 << 20,
            peaks={
                "float64": 70e12, "float32": 120e12, "tf32": 400e12, "float16": 800e12, "bfloat16": 800e12,
                "float8_e4m3fn": 1600e12, "float8_e5m2": 1600e12, "int8": 1600e12,
            },
            shared_bytes=64 << 10, block_shared_bytes=64 << 10, registers=131072, warps=32, warp_size=64, launch_us=2.0, latency_us=4.0,
        ),
    )
}  # fmt: skip


def get_target(name: str) -> Target:
    """The target of that name.

    Raises:
        MisuseError: it is not in the table.
    """
    try:
        return TARGETS[name]
    except KeyError:
        raise MisuseError(f"unknown target {name!r}: choose one of {', '.join(TARGETS)}") from None


def detect_target(default: str = "cuda:90") -> str:
    """The name of this machine's GPU in the table, or the nearest older one of its kind; `default` where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        return default
    if torch.version.hip:
        return "hip:gfx942"
    major, minor = torch.cuda.get_device_capability()
    known = sorted(int(name.split(":")[1]) for name in TARGETS if name.startswith("cuda:"))
    fitting = [arch for arch in known if arch <= major * 10 + minor]
    return f"cuda:{fitting[-1] if fitting else known[0]}"

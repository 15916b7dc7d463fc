"""How many programs of a kernel fit on one multiprocessor at once, and what stops more from fitting."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.target import Target


@dataclass(frozen=True)
class Occupancy:
    """Resident warps over the most that a multiprocessor holds.

    Attributes:
        occupancy: 0 to 1.
        limited_by: ``registers``, ``shared memory``, ``warps`` or ``programs``: the limit that is met first.
        blocks: resident programs of one multiprocessor; 0 where not even one fits.
    """

    occupancy: float
    limited_by: str
    blocks: int


def occupancy(target: Target, warps: int, registers: int, shared: int) -> Occupancy:
    """The occupancy of programs of `warps` warps, with `registers` per thread and `shared` bytes per program.

    Registers are handed out to whole warps in steps of 256 (CUDA; on CDNA in steps of 8 per lane of a wave), and CUDA keeps 1 KiB of
    shared memory for itself in each program.
    """
    limits: dict[str, int] = {"warps": target.warps // max(warps, 1), "programs": target.blocks}
    if registers > 0:
        if target.backend == "cuda":
            per_warp = _up(registers * target.warp_size, 256)
            # Each of the four schedulers has a quarter of the register file, so warps fit in multiples of four.
            limits["registers"] = target.registers // 4 // per_warp * 4 // max(warps, 1)
        else:
            # One SIMD holds 512 registers a lane, four SIMDs a compute unit, 8 waves at most on each.
            waves = min(target.warps // 4, 512 // max(_up(registers, 8), 8))
            limits["registers"] = waves * 4 // max(warps, 1)
    reserve = 1024 if target.backend == "cuda" else 0
    if shared + reserve > 0:
        limits["shared memory"] = 0 if shared > target.block_shared_bytes else target.shared_bytes // (_up(shared, 128) + reserve)
    order = ("registers", "shared memory", "warps", "programs")
    name = min((name for name in order if name in limits), key=lambda name: limits[name])
    blocks = limits[name]
    return Occupancy(occupancy=min(1.0, blocks * warps / target.warps), limited_by=name, blocks=blocks)


def _up(value: int, step: int) -> int:
    return -(-value // step) * step

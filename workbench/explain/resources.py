"""What limits how much of a kernel runs at once."""

from __future__ import annotations

from workbench.build.occupancy import Occupancy, occupancy
from workbench.candidate import Resources
from workbench.target import Target

__all__ = ["Occupancy", "occupancy", "registers_for_one_more"]


def registers_for_one_more(target: Target, resources: Resources) -> int | None:
    """The most registers per thread at which one more program would fit on a multiprocessor; None where registers aren't the limit."""
    now = occupancy(target, resources.warps, resources.registers, resources.shared_bytes)
    if now.limited_by != "registers":
        return None
    for registers in range(resources.registers - 1, 15, -1):
        if occupancy(target, resources.warps, registers, resources.shared_bytes).blocks > now.blocks:
            return registers
    return None

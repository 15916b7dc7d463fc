"""What is not in `workbench.target`: the few figures by which times are modelled. One place, so that they can be fitted at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Constants:
    """Figures of the model of a launch's time.

    Attributes:
        memory_latency_us: from asking device memory to having the answer, under load.
        dependent_load_us: what one more iteration of a loop with a load costs a program that waits for it.
        overlap: loads that a program has in flight before it waits for the first.
        vector_efficiency: share of the bandwidth that accesses of so many bytes a thread reach.
        l2_share: part of the L2 that re-read data can count on.
        stream_efficiency: share of a copy's bandwidth that a library's kernel reaches.
        library_matmul: share of the peak that a library's matrix product reaches.
        tile_intensity: M·N/(M+N) of the tile at which tensor cores are fully fed.
        unpipelined: share of the peak where loads are not overlapped with products.
        instruction_rate: share of the FLOP/s peak that plain instructions reach: the peak counts a multiply-add as two.
        atomics_per_second: to distinct addresses; `atomic_us`: one after another to the same.
        spill_traffic: how often a spilled byte is moved.
        tail: how much of an uneven last wave shows where memory is the limit.
    """

    memory_latency_us: float = 0.8
    dependent_load_us: float = 0.6
    overlap: float = 4.0
    vector_efficiency: Mapping[int, float] = field(default_factory=lambda: {1: 0.45, 2: 0.72, 4: 0.92, 8: 0.98, 16: 1.0})
    l2_share: float = 0.7
    stream_efficiency: float = 0.85
    library_matmul: float = 0.8
    tile_intensity: float = 72.0
    unpipelined: float = 0.65
    instruction_rate: float = 0.4
    atomics_per_second: float = 5e11
    atomic_us: float = 0.002
    spill_traffic: float = 4.0
    tail: float = 0.3


CONSTANTS = Constants()

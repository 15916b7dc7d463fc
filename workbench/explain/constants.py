"""What is not in `workbench.target`: the few figures by which times are modelled. One place, so that they can be fitted at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Constants:
    """Figures of the model of a launch's time, fitted to 54 kernels of ten ops that were measured on an H200.

    Attributes:
        memory_latency_us: from asking device memory to having the answer, under load.
        step_us: what a program waits for each of the loads that it can't have before it has done with those before.
        dispatch_us: what a multiprocessor takes to start one program.
        vector_efficiency: share of the bandwidth that accesses of so many bytes a thread reach.
        l2_share: part of the L2 that re-read data can count on.
        l1_relief: how much of what the tiles of a matrix product ask for is found in the L1 of their multiprocessor.
        stream_efficiency: share of a copy's bandwidth that a library's elementwise kernel reaches; `reduce_efficiency` of its others.
        library_matmul: share of the peak that a library's matrix product reaches.
        tile_intensity: M·N/(M+N) of the tile at which tensor cores are fully fed.
        unpipelined: share of the peak where loads are not overlapped with products; less still where programs do not overlap either.
        tf32: share of its peak that TF32 reaches: its operands have to be laid out anew. `tf32x3`: products that one of this kind takes.
        bf16x6: bfloat16 products that one of float32 takes in three parts each, splitting included. Not fitted: none was measured.
        instruction_rate: share of the FLOP/s peak that plain instructions reach: the peak counts a multiply-add as two.
        atomics_per_second: to distinct addresses; `atomic_us`: one after another to the same.
        spill_traffic: how often a spilled byte is moved.
        tail: how much of an uneven last wave shows where memory is the limit.
    """

    memory_latency_us: float = 1.3
    step_us: float = 0.1
    dispatch_us: float = 0.079
    vector_efficiency: Mapping[int, float] = field(default_factory=lambda: {1: 0.45, 2: 0.72, 4: 0.92, 8: 0.98, 16: 1.0})
    l2_share: float = 0.7
    l1_relief: float = 0.65
    stream_efficiency: float = 0.85
    reduce_efficiency: float = 0.47
    library_matmul: float = 0.8
    tile_intensity: float = 62.0
    unpipelined: float = 0.65
    tf32: float = 0.45
    tf32x3: float = 2.2
    bf16x6: float = 9.0
    instruction_rate: float = 0.26
    atomics_per_second: float = 5e11
    atomic_us: float = 0.0016
    spill_traffic: float = 12.0
    tail: float = 0.5


CONSTANTS = Constants()

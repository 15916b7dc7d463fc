"""The time of a candidate on a GPU that is not there: what its launches move and compute, over what the target can.

It is a model for ranking candidates, never a measurement. Each launch takes as long as the slowest of device memory, L2, arithmetic, and
the chain of loads in one program; the kernels of one call follow each other. All of the card's figures come from `workbench.target`, and
the model's from `workbench.explain.constants`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.candidate import ModelledTime
from workbench.explain.constants import CONSTANTS, Constants
from workbench.judge.recording.launches import LaunchTraffic, LibraryCall, RecordedLaunch, Recording, Traffic
from workbench.target import Target


@dataclass(frozen=True)
class LaunchTime:
    """One launch, in µs; `total` is of one, not of all `count`."""

    total: float
    memory: float
    l2: float
    compute: float
    chain: float
    overhead: float
    dram_bytes: float
    l2_bytes: float
    flops: float


def model_time(recording: Recording, traffic: Traffic, target: Target, constants: Constants = CONSTANTS) -> ModelledTime:
    """The modelled time of one call.

    Launches that `traffic` lacks (it may be partial) are counted by the size of what they were given, from those of the same kernel
    where there are some.

    Args:
        recording: launches and library calls, compiled for `target`.
        traffic: of the same launches; they are matched by their keys.
        target: the card.
        constants: of the model, for fitting.
    """
    measured = {launch.key: launch for launch in traffic.launches}
    parts: list[tuple[LaunchTime, int]] = []
    for launch in recording.launches:
        found = measured.get(launch.key) or next((item for item in traffic.launches if item.kernel == launch.kernel), None)
        parts.append((launch_time(launch, found or LaunchTraffic(launch.key, launch.kernel, launch.grid), target, constants), launch.count))
    parts += [(library_time(call, target, constants), call.count) for call in recording.library]

    def summed(name: str) -> float:
        return float(sum(getattr(part, name) * count for part, count in parts))

    memory, l2, compute, overhead = summed("memory"), summed("l2"), summed("compute"), summed("overhead")
    limits = {"memory": memory + summed("chain"), "l2": l2, "compute": compute, "launches": overhead}
    return ModelledTime(
        total_us=summed("total"),
        dram_bytes=summed("dram_bytes"),
        l2_bytes=summed("l2_bytes"),
        flops=summed("flops"),
        memory_us=memory,
        l2_us=l2,
        compute_us=compute,
        launch_us=overhead,
        launches=sum(count for _, count in parts),
        limiter=max(limits, key=lambda name: limits[name]),
    )


def launch_time(launch: RecordedLaunch, traffic: LaunchTraffic, target: Target, constants: Constants = CONSTANTS) -> LaunchTime:
    """One launch of a kernel of the candidate's own."""
    programs = max(launch.programs, 1)
    slots = max(launch.blocks, 1) * target.multiprocessors
    waves = programs / slots
    busy = min(1.0, programs / target.multiprocessors)

    spilled = launch.resources.spill_bytes * launch.resources.warps * target.warp_size * programs * constants.spill_traffic
    requested = max(traffic.requested_bytes, traffic.unique_bytes) + spilled
    dram = _dram_bytes(traffic, requested - spilled, min(programs, slots), target, constants)
    flow = _in_flight(launch, traffic, programs, target, constants)
    width = _vector_efficiency(launch.vectors, constants)
    tail = 1.0 + constants.tail * (math.ceil(waves) / waves - 1.0) if waves > 1 else 1.0
    memory = dram / (target.bandwidth * flow * width) * tail
    asked = (
        requested * (1.0 - constants.l1_relief) if traffic.dot_flops else requested - _from_l1(launch, traffic, requested - spilled, target)
    )
    # The L1 is a few times faster than the L2, not free.
    asked = max(asked, requested / 3.0)
    l2 = asked / (target.l2_bandwidth * busy * width) + _atomic_seconds(traffic, constants)
    compute, flops = _compute(launch, traffic, programs, target, constants)
    # Programs of one wave wait together. Products are staged: their loads are under way while others are multiplied.
    chain = math.ceil(waves) * traffic.steps * constants.step_us * 1e-6 / (4.0 if traffic.dot_flops else 1.0)
    dispatch = programs / target.multiprocessors * constants.dispatch_us * 1e-6
    overhead = target.latency_us + target.launch_us
    streamed = max(memory, chain) if traffic.dot_flops else memory + chain
    seconds = max(streamed, l2, compute, dispatch)
    return LaunchTime(
        total=1e6 * seconds + overhead,
        memory=1e6 * memory,
        l2=1e6 * l2,
        compute=1e6 * compute,
        chain=1e6 * chain,
        overhead=overhead,
        dram_bytes=dram,
        l2_bytes=requested,
        flops=flops,
    )


def library_time(call: LibraryCall, target: Target, constants: Constants = CONSTANTS) -> LaunchTime:
    """One call of a library's kernel, which is taken to be a good one."""
    memory = call.bytes / (target.bandwidth * (constants.reduce_efficiency if call.kind == "compute" else constants.stream_efficiency))
    peak = target.peak(call.dtype) * constants.library_matmul if call.dtype else target.peak("float32") * constants.instruction_rate
    compute = call.flops / peak
    overhead = target.latency_us + target.launch_us
    return LaunchTime(
        total=1e6 * max(memory, compute) + overhead,
        memory=1e6 * memory,
        l2=1e6 * call.bytes / target.l2_bandwidth,
        compute=1e6 * compute,
        chain=0.0,
        overhead=overhead,
        dram_bytes=call.bytes,
        l2_bytes=call.bytes,
        flops=call.flops,
    )


def _dram_bytes(traffic: LaunchTraffic, requested: float, resident: int, target: Target, constants: Constants) -> float:
    """Distinct bytes, and those re-reads of a program's own data that the L2 has lost again by then."""
    again = max(0.0, requested - traffic.program_bytes * traffic.programs)
    working_set = traffic.program_bytes * resident
    room = constants.l2_share * target.l2_bytes
    lost = max(0.0, 1.0 - room / working_set) if working_set > 0 else 0.0
    return traffic.unique_bytes + again * lost


def _from_l1(launch: RecordedLaunch, traffic: LaunchTraffic, requested: float, target: Target) -> float:
    """Bytes that a program asks for again while the L1 still has them: all, where the data of the programs that share it fit."""
    again = max(0.0, requested - traffic.program_bytes * traffic.programs)
    room = 0.75 * target.shared_bytes - launch.resources.shared_bytes * launch.blocks
    held = traffic.program_bytes * max(launch.blocks, 1)
    return again if held <= room else 0.0


def _in_flight(launch: RecordedLaunch, traffic: LaunchTraffic, programs: int, target: Target, constants: Constants) -> float:
    """Share of the bandwidth that the bytes in flight can sustain: by Little's law, bandwidth times latency must be on its way."""
    needed = target.bandwidth * constants.memory_latency_us * 1e-6
    resident = min(programs, max(launch.blocks, 1) * target.multiprocessors)
    per_step = traffic.requested_bytes / max(traffic.programs, 1) / max(traffic.steps, 1.0)
    stages = max(launch.resources.stages - 1, 1) if traffic.dot_flops else 1
    ratio = resident * per_step * stages / needed
    return ratio / math.sqrt(1.0 + ratio * ratio) if ratio > 0 else 1.0


def _vector_efficiency(vectors: Mapping[str, int], constants: Constants) -> float:
    """By the mix of accesses in the code, weighted with the bytes that they move."""
    total = sum(int(size) * count for size, count in vectors.items())
    if not total:
        return 1.0
    table = constants.vector_efficiency
    # Time adds up, so the mean is taken of the inverse.
    slowness = sum(int(size) * count / table.get(int(size), 1.0) for size, count in vectors.items()) / total
    return 1.0 / slowness


def _atomic_seconds(traffic: LaunchTraffic, constants: Constants) -> float:
    if not traffic.atomics:
        return 0.0
    # A scalar in each program means one address; blocks spread over the elements of the sectors that they touch.
    scalar = traffic.atomics / max(traffic.programs, 1) < 8
    places = max(traffic.write_bytes / (32 if scalar else 4), 1.0)
    return traffic.atomics / constants.atomics_per_second + traffic.atomics / places * constants.atomic_us * 1e-6


def _compute(launch: RecordedLaunch, traffic: LaunchTraffic, programs: int, target: Target, constants: Constants) -> tuple[float, float]:
    """Seconds of arithmetic, and the FLOPs in it. Programs are dealt to multiprocessors whole, so an uneven share waits for the fullest."""
    share = programs / target.multiprocessors
    uneven = math.ceil(share) / share
    plain = traffic.flops / (target.peak("float32") * constants.instruction_rate)
    precision = {dot.dtype: dot.precision for dot in launch.dots}
    products = 0.0
    for dtype, flops in traffic.dot_flops.items():
        name = precision.get(dtype, dtype)
        products += flops / _product_rate(name, launch, target, constants)
    return (plain + products) * uneven, traffic.flops + sum(traffic.dot_flops.values())


def _product_rate(name: str, launch: RecordedLaunch, target: Target, constants: Constants) -> float:
    """FLOP/s of matrix products at a precision: cores starve on small tiles, and without loads ahead of the products."""
    shapes = [dot.shape for dot in launch.dots if len(dot.shape) == 3]
    m, n, _ = max(shapes, key=lambda shape: shape[0] * shape[1], default=(32, 32, 32))
    fed = min(1.0, m * n / (m + n) / constants.tile_intensity)
    if name == "ieee":
        return target.peak("float32") * min(0.85, math.sqrt(fed) * 1.1)
    staged = 1.0
    if launch.resources.stages < 3:
        staged = constants.unpipelined if launch.blocks > 2 else constants.unpipelined**2
    whole = {"tf32x3": "tf32", "bf16x6": "bfloat16"}.get(name, name)
    rate = target.peak(whole) * max(0.95 * fed * staged, 0.02)
    if name in ("tf32", "tf32x3"):
        rate *= constants.tf32
    return rate / {"tf32x3": constants.tf32x3, "bf16x6": constants.bf16x6}.get(name, 1.0)

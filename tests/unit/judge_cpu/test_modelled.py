"""The model against 54 kernels that were timed on an H200 (torch 2.11, triton 3.6, cold L2), and against plain reason.

`model_variants.py` makes the variants, and says how the file beside it was made.
"""

import dataclasses
import json
import math
from pathlib import Path

import pytest

from workbench.bench.ranks import correlation
from workbench.candidate import Resources
from workbench.judge.recording.launches import DotUse, LaunchTraffic, LibraryCall, RecordedLaunch, Recording, Traffic
from workbench.judge.recording.modelled import launch_time, model_time
from workbench.records import decode
from workbench.target import TARGETS

H200 = TARGETS["cuda:90"]
VARIANTS = json.loads((Path(__file__).parent / "h200_variants.json").read_text())


def modelled(variant) -> float:
    return model_time(decode(Recording, variant["recording"]), decode(Traffic, variant["traffic"]), H200).total_us


def test_it_ranks_as_the_gpu_does():
    assert len(VARIANTS) >= 40
    measured = [variant["measured_us"] for variant in VARIANTS.values()]
    assert correlation(measured, [modelled(variant) for variant in VARIANTS.values()]) >= 0.95


def test_it_ranks_variants_of_one_op():
    groups: dict[str, list[tuple[float, float]]] = {}
    for name, variant in VARIANTS.items():
        groups.setdefault(name.split()[0], []).append((variant["measured_us"], modelled(variant)))
    right = pairs = 0.0
    for group in groups.values():
        for i, (measured, ours) in enumerate(group):
            for other, theirs in group[:i]:
                if abs(math.log(measured / other)) > 0.05:
                    pairs += 1
                    right += (measured - other) * (ours - theirs) > 0
    assert pairs > 100 and right / pairs >= 0.9


def test_it_is_near_the_measured_times():
    errors = sorted(abs(math.log(modelled(variant) / variant["measured_us"])) for variant in VARIANTS.values())
    assert errors[len(errors) // 2] < math.log(1.2) and errors[int(len(errors) * 0.9)] < math.log(1.6)


LAUNCH = RecordedLaunch(
    "k", "k", (4096, 1, 1), resources=Resources("k", (4096, 1, 1), warps=8, registers=40, shared_bytes=32, stages=3), blocks=5,
    vectors={"16": 8},
)  # fmt: skip
TRAFFIC = LaunchTraffic(
    "k", "k", (4096, 1, 1), programs=4096, unique_bytes=134e6, read_bytes=67e6, write_bytes=67e6, program_bytes=32768,
    requested_bytes=134e6, flops=2e8, steps=1,
)  # fmt: skip


def total(launch=LAUNCH, traffic=TRAFFIC, **changes) -> float:
    fields = {field.name for field in dataclasses.fields(launch)}
    of_launch = {name: value for name, value in changes.items() if name in fields}
    of_traffic = {name: value for name, value in changes.items() if name not in fields}
    return launch_time(dataclasses.replace(launch, **of_launch), dataclasses.replace(traffic, **of_traffic), H200).total


def test_never_faster_than_the_copy():
    assert total() > 134e6 / H200.bandwidth * 1e6


@pytest.mark.parametrize(
    "worse",
    [
        {"resources": dataclasses.replace(LAUNCH.resources, spill_bytes=512)},
        {"vectors": {"2": 8}},
        {"unique_bytes": 200e6, "requested_bytes": 200e6},
        {"requested_bytes": 900e6},
        {"steps": 64},
        {"atomics": 1e8},
        {"flops": 2e10},
    ],
)
def test_what_is_worse_takes_longer(worse):
    assert total(**worse) > 1.1 * total()


def test_a_grid_smaller_than_the_card_is_slow():
    few = {"grid": (16, 1, 1), "programs": 16, "program_bytes": 8.4e6}
    assert total(**few, steps=100) > 2 * total()


def test_data_read_again_comes_from_l2_if_it_fits():
    again = dataclasses.replace(TRAFFIC, requested_bytes=201e6)
    assert launch_time(LAUNCH, again, H200).dram_bytes == pytest.approx(134e6)
    long = dataclasses.replace(again, program_bytes=134e6 / 64, programs=64, grid=(64, 1, 1))
    assert launch_time(dataclasses.replace(LAUNCH, grid=(64, 1, 1)), long, H200).dram_bytes > 170e6


def test_products_by_precision():
    def product(precision, dtype="float32", tile=(128, 128, 32)):
        launch = dataclasses.replace(LAUNCH, grid=(1024, 1, 1), dots=(DotUse(dtype, precision, tile),), blocks=2)
        return total(launch, dataclasses.replace(TRAFFIC, programs=1024, dot_flops={dtype: 1.4e11}, unique_bytes=1e8, requested_bytes=1e9))

    assert product("ieee") > product("tf32x3") > product("tf32") > product("bfloat16", "bfloat16")
    assert product("bfloat16", "bfloat16", (32, 32, 32)) > 2 * product("bfloat16", "bfloat16")


def test_launches_and_library_calls_add_up():
    one = model_time(Recording((LAUNCH,)), Traffic((TRAFFIC,)), H200)
    three = model_time(Recording((dataclasses.replace(LAUNCH, count=3),)), Traffic((TRAFFIC,)), H200)
    assert three.total_us == pytest.approx(3 * one.total_us) and three.launches == 3
    library = model_time(
        Recording((LAUNCH,), (LibraryCall("mm", "compute", 100_000_000, int(1.4e11), "bfloat16"),)), Traffic((TRAFFIC,)), H200
    )
    assert library.total_us > one.total_us + 1.4e11 / H200.peak("bfloat16") * 1e6
    tiny = dataclasses.replace(TRAFFIC, unique_bytes=4096, requested_bytes=4096, flops=0, programs=1, grid=(1, 1, 1), program_bytes=4096)
    assert model_time(Recording((dataclasses.replace(LAUNCH, grid=(1, 1, 1)),)), Traffic((tiny,)), H200).limiter == "launches"


def test_other_targets_are_slower_or_not():
    times = {name: model_time(Recording((LAUNCH,)), Traffic((TRAFFIC,)), target).total_us for name, target in TARGETS.items()}
    assert times["cuda:80"] > 2 * times["cuda:90"] and times["hip:gfx942"] < 2 * times["cuda:90"]


def test_a_launch_without_traffic_still_counts():
    assert model_time(Recording((LAUNCH,)), Traffic(error="cut short"), H200).total_us >= H200.latency_us

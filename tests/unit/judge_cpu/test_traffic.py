"""Bytes and FLOPs of whole grids from sixteen programs, against what the ops must move."""

import random

import numpy as np
import pytest
from triton_families import FAMILIES
from triton_processes import run_lines

from workbench.judge.recording import sectors
from workbench.judge.recording.launches import Traffic
from workbench.records import decode


@pytest.fixture(scope="module")
def measured():
    return {line["family"]: (decode(Traffic, line["traffic"]), line["memory_kib"]) for line in run_lines("measure_families.py")}


def bytes_of(name: str) -> float:
    item = {"float32": 4, "bfloat16": 2, "int64": 8}[FAMILIES[name].dtypes[0]]
    return sum(float(np.prod(shape)) * item for shape in FAMILIES[name].real)


# Distinct bytes, as a multiple of the inputs' (the output's part is worked out by hand), and requested bytes over distinct ones.
EXPECTED = {
    "softmax_row": (2.0, 1.0),
    "softmax_loop": (2.0, 1.5),
    "rmsnorm": (2.0, 1.5),  # each row asks for the weights too
    "gelu_mul_libdevice": (1.5, 1.0),
    "gelu_mul_sigmoid": (1.5, 1.0),
    "linear_relu": (1.5, 43.0),
    "autotuned": (1.5, 5.66),
    "block_pointers": (1.5, 43.0),
    "cumsum_scan": (2.0, 1.0),
    "transpose_add": (1.5, 1.0),
    "attention": (1.333, 32.5),
    "welford_layernorm": (2.0, 2.0),
    "histogram_atomics": (1.0, 1.06),
    "descriptors": (2.0, 1.0),
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_unique_and_requested_bytes(name, measured):
    traffic, _ = measured[name]
    (launch,) = traffic.launches
    unique, requested = EXPECTED[name]
    assert traffic.error == ""
    assert launch.unique_bytes == pytest.approx(unique * bytes_of(name), rel=0.03)
    assert launch.requested_bytes / launch.unique_bytes == pytest.approx(requested, rel=0.05)
    assert launch.read_bytes + launch.write_bytes == launch.unique_bytes


def test_flops_of_products(measured):
    (launch,) = measured["linear_relu"][0].launches
    assert launch.dot_flops == pytest.approx({"float32": 2 * 4096**3}, rel=1e-6)
    (split,) = measured["split_k"][0].launches
    assert split.dot_flops["float32"] == pytest.approx(2 * 64 * 16384 * 256, rel=1e-6)
    assert split.atomics == pytest.approx(4 * 64 * 256, rel=1e-6)


def test_two_launches_are_two(measured):
    partial, scale = measured["two_launches"][0].launches
    assert partial.kernel == "partial_sums" and partial.programs == 4096 and scale.programs == 1024 * 1024
    assert partial.unique_bytes == pytest.approx(1024 * 65536 * 4, rel=0.01)
    assert scale.by_argument["x"] == pytest.approx(1024 * 65536 * 4, rel=0.01)


def test_indices_are_real(measured):
    # 4096 targets of which each picks one element of its own row: the logits are read once, and nothing else is.
    (launch,) = measured["cross_entropy"][0].launches
    assert launch.unique_bytes == pytest.approx(4096 * 32000 * 4, rel=0.01)


def test_memory_stays_untouched(measured):
    assert max(memory for _, memory in measured.values()) < 700_000  # KiB, where the inputs together have gigabytes


def test_long_programs_are_cut_short_and_say_so(measured):
    (launch,) = measured["linear_relu"][0].launches
    assert launch.sampled < 16 and "sampled programs" in launch.note


def spans(*pairs):
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def test_sector_sets_against_plain_sets():
    rng = random.Random(0)
    for _ in range(200):
        base = rng.randrange(1 << 20) * 4
        rows, columns, stride, item = rng.choice([1, 4, 16]), rng.choice([1, 8, 32]), rng.choice([1, 3, 40, 1000]), rng.choice([1, 2, 4, 8])
        grid = base + (np.arange(rows)[:, None] * stride * rng.choice([1, 32]) + np.arange(columns)[None, :] * rng.choice([1, 5])) * item
        pointers = grid.astype(np.uint64)
        if rng.random() < 0.3:
            pointers = pointers.T
        mask = (
            np.array([[rng.random() < 0.7 for _ in range(pointers.shape[1])] for _ in range(pointers.shape[0])])
            if rng.random() < 0.5
            else None
        )
        chosen = pointers if mask is None else pointers[mask]
        expected = {int(pointer) // 32 for pointer in chosen.ravel()}
        made = sectors.of_pointers(pointers, mask)
        assert {sector for start, end in zip(*made, strict=True) for sector in range(start, end)} == expected
        assert sectors.size(made) == len(expected)
        assert all(made[0][1:] > made[1][:-1])


def test_merge_and_overlap():
    one, other = spans((0, 4), (10, 12)), spans((3, 6), (20, 21))
    assert [list(part) for part in sectors.merge([one, other])] == [[0, 10, 20], [6, 12, 21]]
    assert sectors.overlap(one, other) == 1
    assert sectors.size(sectors.merge([])) == 0


def stencil(program):  # 100 sectors, 20 of them the next one's
    return spans((program * 80, program * 80 + 100))


@pytest.mark.parametrize(
    ("touch", "limit", "true"),
    [
        (lambda p: spans((p * 50, p * 50 + 50)), 10**9, 50 * 10_000),  # each its own
        (lambda p: spans((7, 77)), 10**9, 70),  # all the same
        (lambda p: spans((p % 100 * 50, p % 100 * 50 + 50)), 5000, 5000),  # shared, and the tensor is covered
        (stencil, 10**9, 80 * 10_000 + 20),
        (lambda p: spans((p % 3 * 50, p % 3 * 50 + 50)), 10**9, 150),  # a few shared pieces of a large tensor
    ],
)
def test_the_grid_from_a_sample(touch, limit, true):
    from workbench.judge.recording.sectors import estimate_union

    rng = random.Random(1)
    programs = [index for _ in range(8) for index in [rng.randrange(9_999)]]
    sampled = [touch(program) for program in programs]
    neighbours = [(touch(program), touch(program + 1)) for program in programs]
    assert estimate_union(sampled, neighbours, 10_000, limit) == pytest.approx(true, rel=0.12)

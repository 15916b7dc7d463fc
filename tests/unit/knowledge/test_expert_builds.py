"""What the experts write at realistic sizes is built by the real compiler: wide accesses, no spills, tensor cores for products."""

from __future__ import annotations

import pytest
import torch
from expert_cases import (
    attention,
    attention_causal,
    avg_pool_apart,
    conv_2d_groups,
    conv_transposed_3d,
    conv_transposed_groups,
    cross_entropy,
    gelu_mul,
    layernorm,
    linear_gelu,
    matmul,
    max_pool_overlapping,
    rmsnorm,
    rmsnorm_channels,
    softmax,
    transpose_add,
)
from expert_lab import run_interpreted, trace

from workbench.judge.recording.recorder import record
from workbench.knowledge import experts
from workbench.target import get_target


def meta(*shape, dtype=torch.bfloat16):
    return torch.empty(shape, dtype=dtype, device="meta")


FP32 = torch.float32
BUILDS = {
    "softmax": (softmax, [meta(4096, 8192)], {}, "cuda:90"),
    "softmax loop": (softmax, [meta(4096, 393216, dtype=FP32)], {"passes": "loop", "prefetch": "pipelined"}, "cuda:90"),
    "rmsnorm persistent": (rmsnorm, [meta(4096, 8192), meta(8192)], {"grid": "persistent", "cache": "stream"}, "cuda:90"),
    "layernorm split": (layernorm, [meta(16, 4194304), meta(4194304), meta(4194304)], {"passes": "split"}, "cuda:90"),
    "gelu_mul": (gelu_mul, [meta(4096, 8192), meta(4096, 8192)], {}, "cuda:90"),
    "cross_entropy": (cross_entropy, [meta(4096, 32000), meta(4096, dtype=torch.int64)], {}, "cuda:90"),
    "rmsnorm_channels": (rmsnorm_channels, [meta(112, 64, 512, 512, dtype=FP32)], {}, "cuda:90"),
    "transpose_add": (transpose_add, [meta(8192, 8192, dtype=FP32), meta(8192, 8192, dtype=FP32)], {}, "cuda:90"),
    "linear_gelu": (linear_gelu, [meta(2048, 2048), meta(2048, 2048), meta(2048)], {}, "cuda:90"),
    "matmul fp32": (matmul, [meta(4096, 4096, dtype=FP32), meta(4096, 4096, dtype=FP32)], {}, "cuda:90"),
    "conv_2d_groups": (conv_2d_groups, [meta(8, 256, 128, 128, dtype=FP32), meta(256, 128, 3, 3, dtype=FP32)], {}, "cuda:90"),
    "conv_transposed_3d": (conv_transposed_3d, [meta(8, 64, 32, 32, 32, dtype=FP32), meta(64, 64, 3, 3, 3, dtype=FP32)], {}, "cuda:90"),
    "conv_transposed_groups": (conv_transposed_groups, [meta(8, 64, 64, 64, dtype=FP32), meta(64, 32, 3, 3, dtype=FP32)], {}, "cuda:90"),
    "window walk": (max_pool_overlapping, [meta(8, 64, 512, 512, dtype=FP32), meta(511, dtype=FP32)], {}, "cuda:90"),
    "window fold": (avg_pool_apart, [meta(16, 64, 512, 2048, dtype=FP32)], {}, "cuda:90"),
    "attention": (attention, [meta(4, 16, 2048, 128), meta(4, 16, 2048, 128), meta(4, 16, 2048, 128)], {}, "cuda:90"),
    "attention causal": (attention_causal, [meta(4, 16, 2048, 64)] * 3, {}, "cuda:90"),
    "attention fp32": (attention, [meta(4, 16, 2048, 64, dtype=FP32)] * 3, {}, "cuda:90"),
    "softmax on AMD": (softmax, [meta(4096, 8192)], {}, "hip:gfx942"),
    "gelu_mul on AMD": (gelu_mul, [meta(4096, 8192), meta(4096, 8192)], {}, "hip:gfx942"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_it_builds_without_spills_and_with_wide_accesses(name, tmp_path):
    op, inputs, choices, target = BUILDS[name]
    task = trace(op, *inputs, name=op.__name__, target=target)
    source = experts.write(experts.match(task)[0].expert, task, choices)
    recording = record(source, task.candidate_entry, {}, task.inputs, get_target(target), directory=tmp_path)
    assert recording.error is None
    assert recording.launches
    for launch in recording.launches:
        assert launch.resources.spill_bytes == 0
    main = recording.launches[-1 if name == "matmul fp32" else 0].resources  # its operands' parts are made first
    assert main.vector_bytes == 16 or name.startswith(("conv", "window"))  # what a window sees begins anywhere
    assert main.tensor_cores == name.startswith(("linear_gelu", "matmul", "conv", "attention"))


def scalars(a, b):
    return a * 2 + b, a - b


@pytest.mark.parametrize("precision", ["bf16x6", "tf32x3"])
@pytest.mark.parametrize("op, shapes", [(matmul, ((4096, 64), (64, 4096))), (conv_2d_groups, ((8, 256, 128, 128), (256, 128, 3, 3)))])
def test_two_programs_of_a_float32_product_fit_on_a_multiprocessor(op, shapes, precision, tmp_path):
    task = trace(op, *[meta(*shape, dtype=FP32) for shape in shapes], name=op.__name__)
    source = experts.write(experts.match(task)[0].expert, task, {"residents": "two", "precision": precision})
    recording = record(source, task.candidate_entry, {}, task.inputs, get_target("cuda:90"), directory=tmp_path)
    assert recording.error is None
    assert recording.launches[0].blocks >= 2 and recording.launches[0].resources.spill_bytes == 0


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("grid", ["one", "persistent"])
def test_an_op_on_single_elements_builds_and_computes(shape, grid, tmp_path):
    task = trace(scalars, meta(*shape, dtype=FP32), meta(*shape, dtype=FP32), name="scalars")
    assert experts.match(task)[0].expert == "pointwise"
    source = experts.write("pointwise", task, {"grid": grid})
    recording = record(source, task.candidate_entry, {}, task.inputs, get_target("cuda:90"), directory=tmp_path)
    assert recording.error is None and len(recording.launches) == 1
    a, b = torch.full(shape, 3.0), torch.full(shape, 5.0)
    got = run_interpreted([{"source": source, "entry": task.candidate_entry, "inputs": [a, b]}], tmp_path)[0]
    assert not isinstance(got, str), got
    torch.testing.assert_close(got, [a * 2 + b, a - b])

"""The recorder, in this process: launches at real shapes, compiled for targets that this machine lacks."""

import re
import time
from pathlib import Path

import pytest
import torch
from triton_families import FAMILIES, HEAD, specs

from workbench.judge.recording.launches import Recording
from workbench.judge.recording.recorder import record
from workbench.records import dumps, loads
from workbench.target import TARGETS

H200 = TARGETS["cuda:90"]
SOFTMAX = FAMILIES["softmax_row"]


@pytest.fixture(autouse=True)
def _cache(triton_cache, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", triton_cache)


def recorded(name: str, tmp_path, target=H200, dtype=None, **rest) -> Recording:
    family = FAMILIES[name]
    inputs = specs(family, dtype or family.dtypes[0], family.real)
    return record(family.source, family.entry, rest.pop("parameters", family.parameters), inputs, target, directory=tmp_path, **rest)


def of_source(source: str, tmp_path, entry="f", shapes=((4096, 8192),), dtype="float32", **rest) -> Recording:
    return record(HEAD + source, entry, {}, specs(SOFTMAX, dtype, shapes), H200, directory=tmp_path, **rest)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_family_is_recorded(name, tmp_path):
    recording = recorded(name, tmp_path)
    assert recording.error is None, recording.error
    assert recording.launches
    assert all(launch.resources.registers > 0 and launch.blocks > 0 for launch in recording.launches)
    assert loads(Recording, dumps(recording)) == recording


def test_a_launch_is_specialised_as_tritons_binder_does(tmp_path):
    (launch,) = recorded("softmax_row", tmp_path, dtype="bfloat16").launches
    assert launch.grid == (4096, 1, 1)
    assert launch.arguments == {"x": "*bf16:16", "y": "*bf16:16", "stride": "i32:16", "n": "i32:16"}
    assert launch.constexprs == {"BLOCK": 8192}
    assert launch.resources.vector_bytes == 16 and launch.resources.warps == 4 and launch.resources.spill_bytes == 0
    assert launch.resources.waves == pytest.approx(4096 / (launch.blocks * 132))
    odd = of_source(
        "@triton.jit\ndef k(x, n, one):\n    tl.store(x + n, one)\n\ndef f(x):\n    k[(1,)](x.view(-1)[1:], 7, 1)\n    return x\n", tmp_path
    )
    assert odd.launches[0].arguments == {"x": "*fp32", "n": "i32", "one": "=1"}


def test_parameters_choose_the_options(tmp_path):
    assert recorded("softmax_row", tmp_path, parameters={"WARPS": 8}).launches[0].resources.warps == 8


def test_memory_is_not_committed(tmp_path):
    def peak() -> int:
        return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])

    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew from here
    before = peak()
    recording = of_source(
        "def f(x):\n    y = torch.zeros_like(x)\n    z = torch.empty(x.shape, dtype=torch.float64, device='cuda')\n"
        "    return (x @ x.T).softmax(-1) + y.sum(), z\n",
        tmp_path,
        shapes=((65536, 32768),),
    )
    assert recording.error is None
    assert [output.shape for output in recording.outputs] == [(65536, 65536), (65536, 32768)]
    assert peak() - before < 200_000  # KiB, of 40 GiB
    calls = {call.op: call for call in recording.library}
    assert calls["mm"].flops == 2 * 65536 * 65536 * 32768 and calls["mm"].dtype == "float32"
    assert calls["zeros_like"].kind == "fill" and "calls torch.mm" in recording.labels and "calls torch.zeros_like" not in recording.labels


def test_small_tensors_have_values(tmp_path):
    recording = of_source(
        "@triton.jit\ndef k(x):\n    tl.store(x, 1.0)\n\ndef f(x):\n"
        "    offsets = torch.arange(8, device=x.device).cumsum(0)\n    k[(int(offsets[-1]),)](x)\n    return x\n",
        tmp_path,
    )
    assert recording.launches[0].grid == (28, 1, 1)


def test_equal_launches_are_counted_and_compiled_once(tmp_path):
    source = """
@triton.jit
def k(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i + n, tl.load(x + i))

def f(x):
    for i in range(2, 12):
        k[(16,)](x, i * 32, B=64)
    k[(8,)](x, 64, B=64)
    k[(0,)](x, 64, B=64)
    return x
"""
    recording = of_source(source, tmp_path)
    assert [(launch.count, launch.resources.launches, launch.grid[0]) for launch in recording.launches] == [(10, 10, 16), (1, 1, 8)]
    assert recording.launches[1].build_ms == 0.0


def test_autotune_takes_the_first_configuration_that_fits(tmp_path):
    started = time.perf_counter()
    (launch,) = recorded("autotuned", tmp_path).launches
    # The first one needs a megabyte of shared memory. It is given up before the assembler would take half a minute over it.
    assert launch.constexprs["BM"] == 64 and launch.constexprs["EVEN"] is True
    assert time.perf_counter() - started < 8


def test_dot_precision_is_told(tmp_path):
    assert recorded("linear_relu", tmp_path).resources[0].dot_precision == "ieee"
    family = FAMILIES["linear_relu"]
    plain = family.source.replace(', input_precision="ieee"', "")
    loose = record(plain, family.entry, {}, specs(family, "float32", family.real), H200, directory=tmp_path)
    assert loose.resources[0].dot_precision == "tf32" and loose.resources[0].tensor_cores
    half = record(plain, family.entry, {}, specs(family, "bfloat16", family.real), H200, directory=tmp_path)
    assert half.resources[0].dot_precision == "bfloat16"
    assert half.launches[0].dots[0].shape == (64, 64, 32)


@pytest.mark.parametrize("target", ["cuda:80", "hip:gfx942"])
def test_other_targets(target, tmp_path):
    resources = recorded("softmax_row", tmp_path, target=TARGETS[target], dtype="bfloat16").resources[0]
    assert resources.registers > 16 and resources.vector_bytes == 16 and 0 < resources.occupancy <= 1


def test_a_model_is_constructed_untouched(tmp_path):
    source = """
@triton.jit
def scale(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

class ModelNew(torch.nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.linear = torch.nn.Linear(a, b)
    def forward(self, x):
        h = self.linear(x)
        y = torch.empty_like(h)
        scale[(triton.cdiv(h.numel(), 1024),)](h, y, h.numel(), B=1024)
        return y
"""
    recording = of_source(source, tmp_path, entry="ModelNew", format="model", init_args=(8192, 16384))
    assert recording.error is None and recording.outputs[0].shape == (4096, 16384)
    assert [call.op for call in recording.library] == ["addmm"]


def test_what_the_device_is_asked(tmp_path):
    source = """
@triton.jit
def k(x):
    tl.store(x + tl.program_id(0), 1.0)

def f(x):
    properties = torch.cuda.get_device_properties(x.device)
    assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    device = triton.runtime.driver.active.get_active_torch_device()
    assert triton.runtime.driver.active.utils.get_device_properties(device.index)["max_shared_mem"] == 232448
    out = torch.empty((4, 4), device=device)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        k[(properties.multi_processor_count,)](x)
    torch.cuda.current_stream().wait_stream(stream)
    compiled = k.warmup(x, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0 and compiled.metadata.shared == 0
    return out.cuda().to("cuda:0").to(x.device)
"""
    recording = of_source(source, tmp_path)
    assert recording.error is None, recording.error
    assert recording.launches[0].grid == (132, 1, 1)
    assert not torch.cuda.is_available()  # outside, the machine is what it is


@pytest.mark.parametrize(
    ("change", "kind", "says", "line"),
    [
        (("tl.exp(v", "tl.expp(v"), "build", "has no attribute 'expp'", 12),
        (("v / tl.sum(v, 0)", "v / tl.dot(v, v)"), "build", "input and other must have equal ranks >= 2", 13),
        (("assert x.is_cuda", "assert x.shape[0] < 3, 'only small' #"), "unsupported", "AssertionError: only small", 17),
        (("m, n = x.shape", "m, n = x.shapes"), "raised", "has no attribute 'shapes'", 19),
        (("m, n = x.shape", "raise NotImplementedError('odd rows')"), "unsupported", "odd rows", 19),
        (("return y", "return None"), "raised", "returned no tensor", None),
        (("cols = tl.arange(0, BLOCK)", "cols = tl.arange(0, BLOCK - 1)"), "build", "power of 2", 10),
        (("@triton.jit", "@triton.jitt"), "build", "has no attribute 'jitt'", 7),
        (("def softmax(x):", "def softmax(x:"), "build", "'(' was never closed", 16),
        (("def softmax(x):", "def other(x):"), "build", "defines no 'softmax'", None),
        (("num_warps=WARPS", "num_warps=WARPS, shape=3"), "raised", "shape", 21),
    ],
)
def test_a_fault_is_data_with_its_line(change, kind, says, line, tmp_path):
    source = SOFTMAX.source.replace(*change)
    assert source != SOFTMAX.source
    error = record(source, "softmax", {}, specs(SOFTMAX, "float32", SOFTMAX.real), H200, directory=tmp_path).error
    assert error is not None and error.kind == kind and says in error.message and "\n" not in error.message
    assert error.line == line


def test_too_much_shared_memory_is_a_build_error(tmp_path):
    family = FAMILIES["linear_relu"]
    source = family.source.replace("num_stages=3", "num_stages=16").replace("[64, 128]", "[256]")
    error = record(source, family.entry, {}, specs(family, "float32", family.real), H200, directory=tmp_path).error
    assert error is not None and error.kind == "build" and error.message.startswith("out of resources: matmul_kernel needs")


def test_artifacts_are_kept_on_request(tmp_path):
    (launch,) = recorded("softmax_row", tmp_path, artifacts=True).launches
    assert set(launch.artifacts) == {"ttir", "ttgir", "llir", "ptx", "binary"}
    assert ".visible .entry softmax_kernel" in launch.artifacts["ptx"]


def test_the_recorder_leaves_triton_as_it_was(tmp_path):
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    before = JITFunction.run, Autotuner.run
    of_source("def f(x):\n    raise RuntimeError('no')\n", tmp_path)
    assert (JITFunction.run, Autotuner.run) == before

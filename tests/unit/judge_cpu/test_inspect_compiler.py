"""The compiler's stages of a kernel, and the line of the candidate that each of their lines comes from."""

from __future__ import annotations

import re

import pytest

from workbench.explain import stages
from workbench.judge.inspection.compiler import NotCompiled, compiled
from workbench.target import TARGETS
from workbench.task import InputSpec, Values

SOURCE = """import torch
import triton
import triton.language as tl

TUNE = {"BLOCK": [1024]}


@triton.jit
def shifted(v, by):
    w = v - by
    return tl.exp(w)


@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + cols, mask=cols < n, other=-float("inf"))
    top = tl.max(v, 0)
    e = shifted(v, top)
    s = tl.sum(e, 0)
    tl.store(y + row * n + cols, e / s, mask=cols < n)


def softmax(x):
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK)
    return torch.neg(y)
"""
LINES = SOURCE.splitlines()
LOAD, TOP, EXP, SUM, STORE = (
    next(number for number, line in enumerate(LINES, 1) if text in line) for text in ("tl.load", "tl.max", "tl.exp", "tl.sum", "tl.store")
)
SPECS = (InputSpec("x", (4096, 1000), "float32", (1000, 1), Values("normal")),)


@pytest.fixture(scope="module", params=["cuda:90", "hip:gfx942"])
def report(request, tmp_path_factory):
    return compiled(
        SOURCE, "softmax", {}, SPECS, TARGETS[request.param], format="function", init_args=(), directory=tmp_path_factory.mktemp("one")
    )


def lines_of(stage: stages.Stage, pattern: str) -> set[int]:
    """The candidate's lines of those lines of the stage that match."""
    starts = dict(stage.lines)
    now, found = 0, set()
    for number, text in enumerate(stage.text.splitlines(), 1):
        now = starts.get(number, now)
        if re.search(pattern, text):
            found.add(now)
    return found


def test_the_report_has_the_launch_with_its_figures(report):
    (launch,) = report.launches
    assert (launch.kernel, launch.grid, launch.count) == ("softmax_kernel", (4096, 1, 1), 1)
    assert launch.constexprs["BLOCK"] == 1024
    assert launch.registers > 8
    assert 0 < launch.occupancy <= 1
    assert launch.limited_by
    assert report.library == ("aten::neg",)
    assert report.source == SOURCE


def test_every_stage_maps_to_the_lines_of_the_candidate(report):
    (launch,) = report.launches
    names = [stage.name for stage in launch.stages]
    assert names == (["ttir", "ttgir", "llir", "ptx", "sass"] if report.target == "cuda:90" else ["ttir", "ttgir", "llir", "amdgcn"])
    for stage in launch.stages:
        assert not stage.note, (stage.name, stage.note)
        mapped = {line for _, line in stage.lines}
        assert {LOAD, TOP, EXP, SUM, STORE} <= mapped, stage.name
        assert all(number in range(len(LINES) + 1) for number in mapped)
        assert "loc(" not in stage.text
        assert "!dbg" not in stage.text
        assert "candidate.py" not in stage.text


def test_loads_stores_and_what_is_inlined_have_the_line_that_a_person_would_point_at(report):
    found = {stage.name: stage for stage in report.launches[0].stages}
    assert lines_of(found["ttir"], r"tt\.load ") == {LOAD}
    assert lines_of(found["ttir"], r"tt\.store ") == {STORE}
    assert lines_of(found["ttir"], r"arith\.maxnumf|arith\.maximumf") == {TOP}, "tl.max is inlined: its caller counts"
    assert lines_of(found["ttir"], r'"tt\.reduce"') == {TOP, SUM}
    assert lines_of(found["ttgir"], r"math\.exp") == {EXP}, "of a device function of the candidate's own, its own line counts"
    if report.target == "cuda:90":
        assert lines_of(found["ptx"], r"ld\.global") == {LOAD}
        assert lines_of(found["ptx"], r"st\.global") == {STORE}
        assert lines_of(found["sass"], r"\bLDG\b") == {LOAD}
        assert lines_of(found["sass"], r"\bSTG\b") == {STORE}
        assert EXP in lines_of(found["sass"], r"MUFU\.EX2")
    else:
        assert lines_of(found["amdgcn"], r"buffer_load") == {LOAD}
        assert lines_of(found["amdgcn"], r"buffer_store") == {STORE}


def test_machine_instructions_are_counted_by_class(report):
    counts = dict(report.launches[0].instructions)
    accesses = sum(count for _, count in report.launches[0].vectors)
    assert counts["load global"] + counts["store global"] == accesses
    assert counts["special"] >= 4
    assert counts.get("other", 0) < 0.05 * sum(counts.values()), counts


def test_a_long_stage_is_cut_at_a_line():
    found = stages.stages({"ptx": "\n".join(f"\tadd.f32 %f{number}, 0;" for number in range(100))}, limit=200)[0]
    assert found.cut
    assert len(found.text) <= 200
    assert found.text.endswith(";")


def test_what_does_not_build_says_the_line(tmp_path):
    broken = SOURCE.replace("tl.exp(w)", "tl.exq(w)")
    with pytest.raises(NotCompiled, match=rf"does not build for cuda:80: line {EXP}: .*exq"):
        compiled(broken, "softmax", {}, SPECS, TARGETS["cuda:80"], format="function", init_args=(), directory=tmp_path)


def test_without_kernels_of_its_own_it_says_so(tmp_path):
    source = "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
    found = compiled(source, "softmax", {}, SPECS, TARGETS["cuda:90"], format="function", init_args=(), directory=tmp_path)
    assert found.launches == ()
    assert "only a library's" in found.notes[0]


CUDA_SOURCE = '''import torch

KERNELS = ("double_it", "copy_it")
CUDA = r"""
extern "C" __global__ void copy_it(const float* x, float* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void double_it(const float* x, float* y, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) {
        float v = x[at];
        y[at] = v * 2.0f;
    }
}
"""
double_it = torch.cuda._compile_kernel(CUDA, "double_it")


def softmax(x):
    y = torch.empty_like(x)
    double_it(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), [x, y, x.numel()])
    return y
'''


def test_cuda_stages_map_to_the_lines_of_the_module(tmp_path):
    found = compiled(CUDA_SOURCE, "softmax", {}, SPECS, TARGETS["cuda:90"], format="function", init_args=(), directory=tmp_path)
    (launch,) = found.launches
    assert (launch.kernel, launch.grid) == ("double_it", (16000, 1, 1))
    by_name = {stage.name: stage for stage in launch.stages}
    assert list(by_name) == ["cuda", "ptx", "sass"]
    load, store = (
        next(number for number, line in enumerate(CUDA_SOURCE.splitlines(), 1) if text in line) for text in ("= x[at]", "y[at] =")
    )
    assert lines_of(by_name["cuda"], r"= x\[at\]") == {load}
    assert lines_of(by_name["ptx"], r"st\.global\.f32 .*f[23]") >= {store}
    assert lines_of(by_name["sass"], r"\bLDG\b") == {load}
    assert lines_of(by_name["sass"], r"\bSTG\b") == {store}
    assert "copy_it" not in by_name["sass"].text, "only the launch's own kernel is taken apart"
    assert dict(launch.instructions)["load global"] == 1

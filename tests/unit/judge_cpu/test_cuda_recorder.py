"""CUDA candidates without a GPU: their launches are recorded at the real shapes and compiled for the target."""

import pytest
from triton_families import FAMILIES, specs

from workbench.judge.recording.launches import Recording
from workbench.judge.recording.recorder import record
from workbench.knowledge.cuda_idiom import EXAMPLE, HEADERS, IMPORTS, compile_function
from workbench.records import dumps, loads
from workbench.target import TARGETS

H200 = TARGETS["cuda:90"]


def recorded(source: str, tmp_path, *, entry="add_scaled", shapes=((4096, 8192), (4096, 8192)), target=H200, **rest) -> Recording:
    family = FAMILIES["add"] if "add" in FAMILIES else next(iter(FAMILIES.values()))
    return record(source, entry, rest.pop("parameters", {}), specs(family, "bfloat16", shapes), target, directory=tmp_path, **rest)


def candidate(text: str, *kernels: str, launcher: str, tune: str = "", macros: tuple[str, ...] = ()) -> str:
    """A module in the idiom, for ``f(x)``."""
    head = f'{IMPORTS}\n{tune}\nKERNELS = {kernels!r}\nCUDA = r"""\n{text}"""\n\n\n'
    return head + HEADERS + "\n\n" + compile_function(macros) + "\n\n" + launcher


def of(text: str, *kernels: str, launcher: str, tmp_path, shapes=((4096, 8192),), **rest) -> Recording:
    source = candidate(text, *kernels, launcher=launcher, tune=rest.pop("tune", ""), macros=rest.pop("macros", ()))
    return recorded(source, tmp_path, entry="f", shapes=shapes, **rest)


SCALE = """
extern "C" __global__ void scale(const float* x, float* y, double factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * static_cast<float>(factor);
}
"""


@pytest.mark.parametrize(("target", "block"), [("cuda:90", 256), ("cuda:80", 512)])
def test_the_idiom_is_recorded(target, block, tmp_path):
    found = recorded(EXAMPLE, tmp_path, target=TARGETS[target], parameters={"BLOCK": block})
    assert found.error is None
    (launch,) = found.launches
    assert launch.grid == (4096 * 8192 // 8 // block, 1, 1)
    assert launch.options == {"threads": (block, 1, 1), "dynamic_shared": 0}
    assert launch.arguments == {"0": "*bfloat16:16", "1": "*bfloat16:16", "2": "*bfloat16:16", "3": "fp64", "4": "i32"}
    resources = launch.resources
    assert resources.backend == "cuda" and resources.vector_bytes == 16 and not resources.tensor_cores
    assert resources.warps == block // 32 and 0 < resources.registers < 64 and resources.occupancy > 0.5
    assert resources.waves == pytest.approx(launch.grid[0] / (launch.blocks * TARGETS[target].multiprocessors))
    assert [output.shape for output in found.outputs] == [(4096, 8192)]
    assert not launch.artifacts and loads(Recording, dumps(found)) == found


def test_artifacts_are_the_source_the_ptx_and_the_binary(tmp_path):
    (launch,) = recorded(EXAMPLE, tmp_path, artifacts=True).launches
    assert "__launch_bounds__(BLOCK)" in launch.artifacts["cuda"] and ".entry add_scaled" in launch.artifacts["ptx"]
    assert bytes.fromhex(launch.artifacts["binary"])[:4] == b"\x7fELF"


def test_an_error_has_the_modules_line_and_the_log(tmp_path):
    source = EXAMPLE.replace("out[i] = c;", "oot[i] = c;")
    found = recorded(source, tmp_path)
    assert found.error is not None and found.error.kind == "build" and 'identifier "oot"' in found.error.message
    assert "oot[i] = c;" in source.splitlines()[found.error.line - 1]
    assert f"line {found.error.line}: error" in found.error.log


def test_equal_launches_are_counted_and_others_kept_apart(tmp_path):
    launcher = """
def f(x):
    y = torch.empty_like(x)
    k = kernel("scale", x.device.index)
    for blocks in (3, 3, 5):
        k((blocks, 1, 1), (128, 1, 1), [x, y, 2.0, 384])
    return y
"""
    found = of(SCALE, "scale", launcher=launcher, tmp_path=tmp_path)
    assert [(launch.grid[0], launch.count, launch.resources.launches) for launch in found.launches] == [(3, 2, 2), (5, 1, 1)]


def test_shared_memory_above_48_kib_is_announced_and_counted(tmp_path):
    text = """
extern "C" __global__ void fill(float* y) {
  extern __shared__ float row[];
  row[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}
"""
    launcher = """
def f(x):
    k = kernel("fill", x.device.index)
    k.set_shared_memory_config(SHARED)
    k((4096, 1, 1), (256, 1, 1), [x], shared_mem=SHARED)
    return x
"""
    found = of(text, "fill", launcher=launcher, tmp_path=tmp_path, tune='TUNE = {"SHARED": [100000, 300000]}')
    (launch,) = found.launches
    assert launch.resources.shared_bytes == 100000 and launch.blocks == 2 and launch.resources.limited_by == "shared memory"
    found = of(
        text, "fill", launcher=launcher, tmp_path=tmp_path, tune='TUNE = {"SHARED": [100000, 300000]}', parameters={"SHARED": 300000}
    )
    assert found.error is not None and "NVIDIA H200 has 232448 a block" in found.error.message
    silent = launcher.replace("    k.set_shared_memory_config(SHARED)\n", "")
    found = of(text, "fill", launcher=silent, tmp_path=tmp_path, tune='TUNE = {"SHARED": [100000]}')
    assert found.error is not None and "set_shared_memory_config(100000)" in found.error.message


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ("(4, 1, 1), (128, 1, 1), [x, y, 2.0]", "has 4 parameters and is launched with 3 arguments"),
        ("(4, 1, 1), (128, 1, 1), [x, y, 2, 9]", "argument 2 of scale is a Python int, which arrives as a 32-bit int"),
        ("(4, 1, 1), (128, 1, 1), [x, y, 2.0, 9.0]", r"a double \(8 bytes\), where the kernel's parameter has 4 bytes"),
        ("(4, 1, 1), (128, 1, 1), [x.data_ptr(), y, 2.0, 9]", "arrives with 32 bits; pass tensors as they are"),
        ("(4, 1, 1), (128, 1, 1), [x, y, 2.0, None]", "only tensors, ints and floats can be passed"),
        ("(4, 1, 1), (2048, 1, 1), [x, y, 2.0, 9]", "2048 threads a block; 1024 are possible"),
        ("(4,), (128, 1, 1), [x, y, 2.0, 9]", r"grid must have three sizes, such as \(4, 1, 1\)"),
        ("(0, 1, 1), (128, 1, 1), [x, y, 2.0, 9]", "each size is at least 1"),
        ("(1, 70000, 1), (128, 1, 1), [x, y, 2.0, 9]", "too large: 65535"),
    ],
)
def test_a_launch_that_could_not_work_is_told_with_its_line(launch, words, tmp_path):
    launcher = f"""
def f(x):
    y = torch.empty_like(x)
    kernel("scale", x.device.index)({launch})
    return y
"""
    found = of(SCALE, "scale", launcher=launcher, tmp_path=tmp_path)
    assert found.error is not None and found.error.kind in ("raised", "unsupported")
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(found.error.message)
    source = (tmp_path / "candidate.py").read_text().splitlines()
    assert launch in source[found.error.line - 1]


def test_a_block_that_does_not_fit_is_told(tmp_path):
    text = """
extern "C" __global__ void heavy(float* x, int n) {
  float a[100];
#pragma unroll
  for (int i = 0; i < 100; ++i) a[i] = x[i];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 100; ++i) a[i] = a[i] * x[k] + a[(i + 1) % 100];
  }
#pragma unroll
  for (int i = 0; i < 100; ++i) x[i] = a[i];
}
"""
    launcher = """
def f(x):
    kernel("heavy", x.device.index)((4, 1, 1), (1024, 1, 1), [x, 9])
    return x
"""
    found = of(text, "heavy", launcher=launcher, tmp_path=tmp_path)
    assert found.error is not None and "too many resources requested for launch" in found.error.message
    bound = text.replace("void heavy", "void __launch_bounds__(256) heavy")
    found = of(bound, "heavy", launcher=launcher, tmp_path=tmp_path)
    assert found.error is not None and "1024 threads a block; its __launch_bounds__ promise 256" in found.error.message


def test_kernels_that_are_compiled_when_the_module_runs_are_recorded_too(tmp_path):
    source = f'{IMPORTS}\nCUDA = r"""{SCALE}"""\nKERNELS = ("scale",)\nscale = torch.cuda._compile_kernel(CUDA, "scale")\n\n\n'
    source += "def f(x):\n    y = torch.empty_like(x)\n    scale((4, 1, 1), (128, 1, 1), [x, y, 2.0, 9])\n    return y\n"
    assert len(recorded(source, tmp_path, entry="f", shapes=((64, 64),)).launches) == 1
    broken = source.replace("y[i] =", "z[i] =")
    error = recorded(broken, tmp_path, entry="f", shapes=((64, 64),)).error
    assert error is not None and error.kind == "build" and 'identifier "z"' in error.message


@pytest.mark.parametrize("where", ["module", "call"])
def test_an_extension_is_judged_elsewhere(where, tmp_path):
    build = "load_inline(name='m', cpp_sources='', cuda_sources='')"
    source = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    source += f"m = {build}\n\ndef f(x):\n    return x\n" if where == "module" else f"\ndef f(x):\n    return {build}.f(x)\n"
    found = recorded(source, tmp_path, entry="f", shapes=((64, 64),))
    assert found.error is not None and found.error.kind == "elsewhere" and "nvcc" in found.error.message

"""CUDA C++ compiled for real, for targets that this machine lacks."""

import re
from dataclasses import replace

import pytest
from cuda_sources import FEATURES, HALVES, SEVERAL, SHARED, TEMPLATE, VECTORS, module

from workbench.build import nvrtc
from workbench.build.cuda import CudaBuildError, build_candidate, toolchain
from workbench.build.cuda_source import backend_of, read_cuda
from workbench.build.sass import disassemble
from workbench.knowledge.cuda_idiom import EXAMPLE
from workbench.target import TARGETS

H200, A100 = TARGETS["cuda:90"], TARGETS["cuda:80"]


@pytest.mark.parametrize("target", [H200, A100], ids=lambda target: target.name)
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_compiles(name, target):
    built = build_candidate(FEATURES[name], target)
    assert [kernel.name for kernel in built.kernels] == list(read_cuda(FEATURES[name]).kernels)
    for kernel in built.kernels:
        assert 0 < kernel.registers <= 255 and kernel.spill_bytes == 0
        assert kernel.parameters and all(size > 0 for size in kernel.parameters)
        assert kernel.vectors
    assert built.cubin[:4] == b"\x7fELF" and f".target sm_{target.arch}" in built.ptx
    assert built.toolchain == toolchain()
    assert {kernel.products for kernel in built.kernels} == {{"mma_sync": ("bfloat16",), "wmma": ("float16",)}.get(name, ())}


def test_the_code_tells_what_it_moves_and_holds():
    assert build_candidate(VECTORS, H200).kernels[0].vectors == {16: 2}
    assert build_candidate(HALVES, H200).kernels[0].parameters == (8, 8, 4)
    assert build_candidate(SHARED, H200).kernels[0].shared_bytes == 256
    both = build_candidate(SEVERAL, H200)
    assert both.kernel("two").parameters == (8, 8) and both.kernel("one").symbol == "one"


@pytest.mark.parametrize("name", ["vectors", "halves", "mma_sync", "wmma", "shared"])
def test_the_machine_code_agrees_with_the_ptx(name):
    built = build_candidate(FEATURES[name], H200)
    (kernel,) = built.kernels
    (code,) = disassemble(built.cubin).values()
    assert "EXIT" in code.text
    assert code.products == kernel.products
    if name != "wmma":  # PTX does not say how wide a fragment's loads become
        assert max(code.vectors) == max(kernel.vectors)


def test_spills_are_counted_apart_from_local_arrays():
    text = """
extern "C" __global__ void __launch_bounds__(1024, 2) heavy(float* x, int n) {
  float a[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) a[i] = x[i * n];
#pragma unroll
  for (int r = 0; r < 96; ++r) x[r * n] = a[r] * a[(r * 7 + 3) % 96] + a[95 - r];
}
extern "C" __global__ void indexed(float* x, int n) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = x[i];
  for (int i = 0; i < 64; ++i) x[i] = a[(i * n) & 63];
}
"""
    built = build_candidate(module(text, "heavy", "indexed"), H200)
    heavy, indexed = built.kernels
    assert heavy.registers == 32 and heavy.spill_bytes > 0
    assert indexed.spill_bytes == 0 and indexed.stack_bytes == 256


def test_tuned_numbers_are_macros_also_in_template_arguments():
    assert read_cuda(TEMPLATE).macros == {"WIDTH": "2"}
    default, wide = build_candidate(TEMPLATE, H200), build_candidate(TEMPLATE, H200, {"WIDTH": 8})
    assert "Li2E" in default.kernels[1].symbol and "Li8E" in wide.kernels[1].symbol
    with pytest.raises(CudaBuildError, match="TUNE has no BLOCK"):
        build_candidate(TEMPLATE, H200, {"BLOCK": 1})


def test_values_become_macros():
    source = module('extern "C" __global__ void k(float* x) { *x = SCALE + (FLAG ? 1 : 0) + sizeof(TYPE); }', "k",
                    tune='TUNE = {"SCALE": [0.5], "FLAG": [True], "TYPE": ["double"], "SHAPE": [(1, 2)], "NONE": [None]}')  # fmt: skip
    assert read_cuda(source).macros == {"SCALE": "0.5", "FLAG": "1", "TYPE": "double"}
    assert build_candidate(source, H200).kernels[0].registers > 0


@pytest.mark.parametrize(
    ("old", "new", "words", "quoted"),
    [
        ("float f =", "flot f =", r'identifier "flot" is undefined', "flot f"),
        ("out[i] = c;", "out[i] = c", r'expected a ";"', "}"),
        ("cuda_bf16.h", "cuda_bf17.h", r'cannot open source file "cuda_bf17.h"', "#include"),
        ("__bfloat1622float2(p[k])", "p[k]", r"no suitable", "p[k]"),
        ("a = x[i], b", "a = x[i]; __shared__ uint4 s[4000]; s[i] = a; __syncthreads(); a = s[i ^ 1]; uint4 b", "64000 bytes", ""),
        ('KERNELS = ("add_scaled",)', 'KERNELS = ("scaled",)', r"defines no kernel 'scaled'", ""),
        ('KERNELS = ("add_scaled",)', "KERNELS = tuple(NAMES)", r"KERNELS must be a literal tuple", "KERNELS"),
        ('CUDA = r"""', 'CUDA = "" + r"""', r"CUDA must be one literal string", "CUDA ="),
        ("CUDA = r", "SOURCE = r", r"no CUDA source", ""),
        ("KERNELS =", "NAMES =", r"does not name its kernels", ""),
    ],
)  # fmt: skip
def test_an_error_is_one_line_and_names_the_modules_own_line(old, new, words, quoted):
    source = EXAMPLE.replace(old, new)
    assert source != EXAMPLE
    with pytest.raises(CudaBuildError) as caught:
        build_candidate(source, H200)
    error = caught.value
    assert error.message.startswith("CUDA C++: ") and re.search(words, error.message), error.message
    assert "\n" not in str(error)
    if quoted:
        assert error.line is not None and quoted in source.splitlines()[error.line - 1]
    else:
        assert error.line is None
    assert "candidate.cu(" not in error.log and "__nv_name_map" not in error.log


def test_the_log_names_the_modules_lines_and_the_number_of_errors():
    source = EXAMPLE.replace("float f =", "flot f =").replace("out[i] = c;", "oot[i] = c;")
    with pytest.raises(CudaBuildError, match=r"and 1 more") as caught:
        build_candidate(source, H200)
    lines = source.splitlines()
    named = [int(number) for number in re.findall(r"^line (\d+): error", caught.value.log, re.MULTILINE)]
    assert ["flot" in lines[named[0] - 1], "oot" in lines[named[1] - 1]] == [True, True]


def test_an_ordinary_string_keeps_its_lines_and_a_pieced_one_its_first():
    text = 'extern "C" __global__ void k(float* x) {\\n  *x = y;\\n}'
    source = f"import torch\n\nKERNELS = ('k',)\nCUDA = '{text}'\n\n\ndef f(x):\n    return x\n"
    with pytest.raises(CudaBuildError) as caught:
        build_candidate(source, H200)
    assert caught.value.line == 4 and not read_cuda(source).exact


def test_other_targets_are_refused_in_words():
    with pytest.raises(CudaBuildError, match="NVIDIA's GPUs only, not for hip:gfx942"):
        build_candidate(VECTORS, TARGETS["hip:gfx942"])


def test_half_operators_are_off_as_on_the_gpu():
    with pytest.raises(CudaBuildError, match=r"no operator|no suitable|ambiguous"):
        build_candidate(HALVES.replace("__bfloat162float(x[2 * i])", "x[2 * i] + 1.0f"), H200)


def test_the_cache_is_keyed_by_source_options_target_and_compiler(tmp_path, monkeypatch):
    first = build_candidate(EXAMPLE, H200, directory=tmp_path)
    (file,) = tmp_path.iterdir()
    compiler = nvrtc.find_nvrtc()
    calls = []
    real = nvrtc.Nvrtc.compile
    monkeypatch.setattr(nvrtc.Nvrtc, "compile", lambda self, *args: calls.append(args) or real(self, *args))
    assert build_candidate(EXAMPLE, H200, directory=tmp_path) == first and not calls
    build_candidate(EXAMPLE, A100, directory=tmp_path)
    build_candidate(EXAMPLE, H200, {"BLOCK": 512}, directory=tmp_path)
    build_candidate(EXAMPLE + "\n# another line\n", H200, directory=tmp_path)  # the CUDA text is the same
    assert len(calls) == 2 and len(list(tmp_path.iterdir())) == 3
    file.write_text("{broken")
    assert build_candidate(EXAMPLE, H200, directory=tmp_path) == first and len(calls) == 3
    other = replace(compiler, version=(99, 1))
    monkeypatch.setattr(nvrtc, "find_nvrtc", lambda: other)
    build_candidate(EXAMPLE, H200, directory=tmp_path)
    assert len(calls) == 4


def test_no_compiler_is_one_line_with_the_mend(monkeypatch):
    monkeypatch.setattr(nvrtc, "_libraries", lambda: iter(()))
    nvrtc.find_nvrtc.cache_clear()
    try:
        with pytest.raises(nvrtc.NvrtcMissingError, match=r"pip install 'kernel-workbench\[cuda\]'"):
            build_candidate(EXAMPLE, H200)
    finally:
        monkeypatch.undo()
        nvrtc.find_nvrtc.cache_clear()


def test_what_is_no_cubin_is_refused():
    with pytest.raises(ValueError, match="nvdisasm"):
        disassemble(b"no cubin")


@pytest.mark.parametrize(
    ("source", "backend"),
    [
        (EXAMPLE, "cuda"),
        ("from torch.utils.cpp_extension import load_inline\nsource = ''\nm = load_inline(name='m')\n", "cuda"),
        ("import triton\n\n@triton.jit\ndef k(): ...\n", "triton"),
        ("# not CUDA = 1, KERNELS\ndef f(x):\n    return x.to('cuda')\n", "triton"),
    ],
)
def test_the_backend_is_seen_from_the_text(source, backend):
    assert backend_of(source) == backend

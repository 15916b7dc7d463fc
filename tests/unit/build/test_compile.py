"""The compiler without a GPU, and what is read from its output, held against NVIDIA's own tool where that is at hand."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import triton

from workbench.build.cubin import read_usage
from workbench.build.triton import BuildError, compile_launch
from workbench.target import TARGETS

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def plain(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

@triton.jit
def spilling(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(x + BLOCK + i)
    for k in range(n):
        a += tl.sum(a * b) * b
        b += tl.sum(b) * a
    tl.store(y + i, a + b)

@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * BN + n[None, :])
        acc += tl.dot(x, y, input_precision=HOW)
    tl.store(c + m[:, None] * BN + n[None, :], acc)

@triton.jit
def assembly(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.inline_asm_elementwise("nonsense $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1))

@triton.jit
def helper(v):
    return v + tl.zeros((3,), tl.float32)

@triton.jit
def wrong(x):
    tl.store(x, 1.0)
    helper(tl.load(x))
"""
DIVISIBLE = [["tt.divisibility", 16]]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "kernels_to_build.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("kernels_to_build", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))


def built(kernel, target="cuda:90", aligned=True, warps=4, stages=3, dtype="fp32", grid=(64, 1, 1), **constants):
    pointers = {"x", "y", "a", "b", "c"}
    signature = {name: f"*{dtype}" if name in pointers and name != "c" else "*fp32" if name == "c" else "i32" for name in kernel.arg_names}
    signature |= dict.fromkeys(constants, "constexpr")
    attrs = {(i,): DIVISIBLE for i, name in enumerate(kernel.arg_names) if name not in constants} if aligned else {}
    return compile_launch(kernel, signature, constants, attrs, {"num_warps": warps, "num_stages": stages}, TARGETS[target], grid=grid)


def cuobjdump(cubin: bytes, kernel: str, tmp_path: Path) -> tuple[int, int]:
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    if not tool.exists():
        pytest.skip("no cuobjdump in this triton")
    (tmp_path / "k.cubin").write_bytes(cubin)
    text = subprocess.run([tool, "--dump-resource-usage", tmp_path / "k.cubin"], capture_output=True, text=True, check=True).stdout
    match = re.search(rf"Function {kernel}:\s*REG:(\d+) STACK:(\d+)", text)
    return int(match[1]), int(match[2])


@pytest.mark.parametrize(
    ("name", "target", "block"), [("plain", "cuda:90", 1024), ("plain", "cuda:80", 1024), ("spilling", "cuda:90", 4096)]
)
def test_registers_and_stack_are_nvidias(name, target, block, kernels, tmp_path):
    made = built(getattr(kernels, name), target, warps=1 if name == "spilling" else 4, BLOCK=2 * block if name == "spilling" else block)
    usage = (made.resources.registers, made.resources.spill_bytes)
    assert read_usage(made.binary, name) == usage == cuobjdump(made.binary, name, tmp_path)
    assert (usage[1] > 0) == (name == "spilling")


def test_what_is_no_cubin_is_told():
    with pytest.raises(ValueError, match="not a 64-bit ELF"):
        read_usage(b"nothing", "k")


def test_a_kernel_that_is_not_in_it(kernels):
    with pytest.raises(ValueError, match="no kernel 'other'"):
        read_usage(built(kernels.plain, BLOCK=1024).binary, "other")


@pytest.mark.parametrize(
    ("target", "aligned", "dtype", "vector"),
    [("cuda:90", True, "fp32", 16), ("cuda:90", False, "fp32", 4), ("cuda:90", False, "fp16", 2), ("cuda:80", True, "bf16", 16),
     ("hip:gfx942", True, "fp32", 16), ("hip:gfx942", False, "fp32", 4)],
)  # fmt: skip
def test_vector_width_of_global_accesses(target, aligned, dtype, vector, kernels):
    made = built(kernels.plain, target, aligned, dtype=dtype, BLOCK=1024)
    assert made.resources.vector_bytes == vector and max(made.vectors) == vector
    assert not made.resources.tensor_cores and made.resources.dot_precision == ""


@pytest.mark.parametrize(
    ("target", "dtype", "how", "precision"),
    [("cuda:90", "fp32", "ieee", "ieee"), ("cuda:90", "fp32", "tf32", "tf32"), ("cuda:90", "fp32", "tf32x3", "tf32x3"),
     ("cuda:90", "bf16", "tf32", "bfloat16"), ("cuda:80", "fp16", "ieee", "float16"), ("hip:gfx942", "bf16", "ieee", "bfloat16")],
)  # fmt: skip
def test_precision_of_products(target, dtype, how, precision, kernels):
    made = built(kernels.product, target, dtype=dtype, BM=64, BN=64, BK=32, HOW=how)
    assert made.resources.dot_precision == precision
    assert made.dots[0].shape == (64, 64, 32)
    assert made.resources.tensor_cores is (precision != "ieee")


def test_waves_are_counted_against_the_whole_card(kernels):
    made = built(kernels.plain, grid=(1056, 2, 1), BLOCK=1024)
    assert made.resources.grid == (1056, 2, 1)
    assert made.resources.waves == pytest.approx(2112 / (made.blocks * 132))


def test_stages_are_kept_as_text(kernels):
    assert set(built(kernels.plain, BLOCK=1024).artifacts) == {"ttir", "ttgir", "llir", "ptx"}
    assert set(built(kernels.plain, "hip:gfx942", BLOCK=1024).artifacts) == {"ttir", "ttgir", "llir", "amdgcn"}


def test_an_error_in_a_helper_has_the_helpers_line(kernels):
    with pytest.raises(BuildError) as caught:
        built(kernels.wrong)
    line = SOURCE.splitlines().index("    return v + tl.zeros((3,), tl.float32)") + 1
    assert caught.value.line == line and "power of 2" in caught.value.message and "\n" not in caught.value.message


def test_what_the_assembler_says_is_short(kernels):
    with pytest.raises(BuildError) as caught:
        built(kernels.assembly, BLOCK=64)
    assert caught.value.message.startswith("ptxas: ") and "/" not in caught.value.message and caught.value.line is None


def test_too_much_shared_memory_is_found_before_the_slow_stages(kernels):
    with pytest.raises(BuildError, match="out of resources: product needs") as caught:
        built(kernels.product, dtype="fp32", stages=8, warps=8, BM=256, BN=256, BK=64, HOW="tf32")
    assert "num_stages" in caught.value.message
    assert triton.knobs.runtime.add_stages_inspection_hook is None

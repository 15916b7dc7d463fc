"""Run in a process with TRITON_INTERPRET=1: one check for each mend of the interpreter, against torch. Prints one JSON line each."""

from __future__ import annotations

import json
import sys
import traceback

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

from workbench.judge.emulation.interpreter import InterpreterUnsupported, OutOfBoundsError, mend
from workbench.judge.emulation.numerics import convert

mend()
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def same(got, expected, rtol=0.0, atol=0.0):
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)


def rand(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@triton.jit
def arithmetic(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, a + b)
    tl.store(o + N + i, a - b)
    tl.store(o + 2 * N + i, a * b)
    tl.store(o + 3 * N + i, (a / b).to(o.dtype.element_ty))
    tl.store(o + 4 * N + i, -a)
    tl.store(o + 5 * N + i, tl.abs(a))
    tl.store(o + 6 * N + i, tl.where(a < b, a, b))
    tl.store(o + 7 * N + i, a * 3 + 0.1)


@check
def bfloat16_arithmetic():
    for dtype in (torch.bfloat16, torch.float16):
        x, y = rand(64, dtype=dtype), rand(64, dtype=dtype, seed=1)
        o = torch.empty(8 * 64, dtype=dtype)
        arithmetic[(1,)](x, y, o, N=64)
        expected = [x + y, x - y, x * y, (x.float() / y.float()).to(dtype), -x, x.abs(), torch.minimum(x, y), (x * 3).to(dtype) + 0.1]
        for got, want in zip(o.view(8, 64), expected, strict=True):
            same(got, want, rtol=torch.finfo(dtype).eps / 2)


@triton.jit
def casting(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i).to(o.dtype.element_ty))


@check
def casts_round_to_nearest_even():
    wide = torch.cat([rand(4000) * 100, torch.tensor([0.0, -0.0, 1e-40, float("inf"), -float("inf"), float("nan"), 3.3895e38, 65519.9])])
    wide = torch.cat([wide, (torch.arange(4088) + 0x3F800000).int().view(torch.float32), torch.zeros(8192 - 8096)])
    for source, target in [
        (torch.float32, torch.bfloat16), (torch.float32, torch.float16), (torch.float64, torch.bfloat16), (torch.bfloat16, torch.float32),
        (torch.bfloat16, torch.float16), (torch.float16, torch.bfloat16), (torch.float32, torch.float64), (torch.int32, torch.bfloat16),
        (torch.float32, torch.int32), (torch.bfloat16, torch.int64), (torch.float32, torch.bool), (torch.uint8, torch.float32),
    ]:  # fmt: skip
        x = (
            (wide.nan_to_num(0, 0, 0).clamp(-1e4, 1e4) if not (source.is_floating_point and target.is_floating_point) else wide)
            .abs()
            .to(source)
        )
        o = torch.empty(len(x), dtype=target)
        casting[(1,)](x, o, N=8192)
        same(o, x.to(target))
    odd = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8])  # just above, just below and on the tie between two bfloat16
    assert convert(odd, tl.float64, tl.bfloat16).tolist() == [0x3F81, 0x3F80, 0x3F80]
    assert convert(np.array([3e9, -3e9, np.nan], np.float32), tl.float32, tl.int32).tolist() == [2**31 - 1, -(2**31), 0]


@check
def float8_converts_and_saturates():
    x = torch.cat(
        [rand(500) * 50, torch.tensor([1e6, -1e6, 448.0, 464.0, 0.001, 0.0, -0.0, 57344.0, 1e9, 2.0**-9, 2.0**-10, float("nan")])]
    )
    for dtype, limit in ((torch.float8_e4m3fn, 448.0), (torch.float8_e5m2, 57344.0)):
        o = torch.empty(512, dtype=dtype)
        casting[(1,)](x, o, N=512)
        same(o.float(), x.clamp(-limit, limit).to(dtype).float())
        back = torch.empty(512)
        casting[(1,)](o, back, N=512)
        same(back, o.float())


@triton.jit
def product(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(o + m[:, None] * N + n[None, :], tl.dot(x, y))


@check
def products_of_every_type():
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8):
        if dtype == torch.int8:
            a, b = (torch.randint(-128, 128, (16, 32)).to(dtype) for _ in range(2))
            b = b.reshape(32, 16)
        else:
            a, b = rand(16, 32).to(dtype), rand(32, 16, seed=1).to(dtype)
        o = torch.empty(16, 16, dtype={torch.int8: torch.int32, torch.float64: torch.float64}.get(dtype, torch.float32))
        product[(1,)](a, b, o, M=16, N=16, K=32)
        same(o.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)


@triton.jit
def nan_ops(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, tl.maximum(a, b))
    tl.store(o + N + i, tl.minimum(a, b))
    tl.store(o + 2 * N + i, tl.clamp(a, -1.0, 1.0))
    tl.store(o + 3 * N + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))


@check
def nan_is_dropped_by_max_and_clamp():
    x, y = torch.tensor([float("nan"), 1.0, 2.0, -5.0]), torch.tensor([3.0, float("nan"), 1.0, 7.0])
    o = torch.empty(16)
    nan_ops[(1,)](x, y, o, N=4)
    same(o.view(4, 4)[:2], torch.stack([torch.fmax(x, y), torch.fmin(x, y)]))
    same(o.view(4, 4)[2], torch.tensor([-1.0, 1.0, 1.0, -1.0]))
    same(o.view(4, 4)[3], torch.maximum(x, y))


@triton.jit
def first_arg(v, i, w, j):
    take = (v > w) | ((v == w) & (i < j))
    return tl.where(take, v, w), tl.where(take, i, j)


@triton.jit
def reductions(x, o, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(o + m, tl.sum(v, 1))
    tl.store(o + M + m, tl.max(v, 1))
    tl.store(o + 2 * M + m, tl.min(v, axis=1))
    tl.store(o + 3 * M + m, tl.argmax(v, 1).to(o.dtype.element_ty))
    value, index = tl.reduce((v, tl.broadcast_to(n[None, :], (M, N))), 1, first_arg)
    tl.store(o + 4 * M + m, value)
    tl.store(o + 5 * M + m, index.to(o.dtype.element_ty))
    tl.store(o + 6 * M, tl.sum(v).to(o.dtype.element_ty))
    _best, where = tl.max(v, 1, return_indices=True)
    tl.store(o + 7 * M + m, where.to(o.dtype.element_ty))


@check
def reductions_with_and_without_combine():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = rand(8, 64, dtype=dtype)
        o = torch.empty(8 * 8, dtype=dtype)
        reductions[(1,)](x, o, M=8, N=64)
        got = o.view(8, 8)
        top, index = x.max(1)
        eps = torch.finfo(dtype).eps
        same(got[0], x.float().sum(1).to(dtype), rtol=4 * eps, atol=8 * eps)
        same(got[1], top), same(got[2], x.min(1).values), same(got[4], top)
        for row in (3, 5, 7):
            same(got[row], index.to(dtype))
        same(got[6, 0], x.float().sum().to(dtype), rtol=8 * eps, atol=16 * eps)


@triton.jit
def decay(a, x, b, y):
    return a * b, x * b + y


@triton.jit
def scans(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(o + i, tl.cumsum(v, 0))
    tl.store(o + N + i, tl.cumprod(v, 0))
    tl.store(o + 2 * N + i, tl.cumsum(v, 0, reverse=True))
    _a, h = tl.associative_scan((tl.full((N,), 0.9, tl.float32), v), 0, decay)
    tl.store(o + 3 * N + i, h)
    tl.store(o + 4 * N + i, tl.flip(v, 0))
    tl.store(o + 5 * N + i, tl.sort(v))
    tl.store(o + 6 * N + i, tl.gather(v, (i * 7) % N, 0))


@check
def scans_in_order_and_backwards():
    x = rand(64)
    o = torch.empty(7 * 64)
    scans[(1,)](x, o, N=64)
    h, expected = 0.0, []
    for value in x.double().tolist():
        h = 0.9 * h + value
        expected.append(h)
    rows = [x.cumsum(0), x.cumprod(0), x.flip(0).cumsum(0).flip(0), torch.tensor(expected, dtype=torch.float32), x.flip(0), x.sort().values]
    for got, want in zip(o.view(7, 64), [*rows, x[(torch.arange(64) * 7) % 64]], strict=True):
        same(got, want, rtol=1e-5, atol=1e-5)


@triton.jit
def long_scan(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0))


@check
def long_sums_are_as_exact_as_a_gpus():
    x = torch.rand(8192, generator=torch.Generator().manual_seed(0))
    o = torch.empty(8192)
    long_scan[(1,)](x, o, N=8192)
    exact = x.double().cumsum(0)
    assert ((o - exact).abs() / exact).max() < 8 * 1.2e-7, ((o - exact).abs() / exact).max()


@triton.jit
def atomics(x, total, most, least, swapped, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.atomic_add(total + i % 4, v, mask=i < N - 1)
    tl.atomic_max(most + i % 4, v.to(tl.float32))
    tl.atomic_min(least + i % 4, v.to(tl.float32))
    old = tl.atomic_cas(swapped, 5, 9)
    tl.atomic_xchg(swapped + 1, old)


@check
def atomics_of_every_float():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        x = torch.randint(-4, 5, (32,)).to(dtype)
        total, most, least = torch.zeros(4, dtype=dtype), torch.full((4,), -99.0), torch.full((4,), 99.0)
        swapped = torch.tensor([5, 0], dtype=torch.int32)
        atomics[(1,)](x, total, most, least, swapped, N=32)
        y = x.clone()
        y[-1] = 0
        same(total, y.view(8, 4).sum(0)), same(most, x.view(8, 4).float().amax(0)), same(least, x.view(8, 4).float().amin(0))
        assert swapped.tolist() == [9, 5]


@triton.jit
def library(x, o, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, F(tl.load(x + i)).to(o.dtype.element_ty))


@check
def library_functions():
    x = rand(64).abs() + 0.1
    unit = torch.rand(64, generator=torch.Generator().manual_seed(1)) * 0.98 + 0.01
    table = {
        "exp": torch.exp, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p, "log2": torch.log2, "log10": torch.log10,
        "exp2": torch.exp2, "tanh": torch.tanh, "sinh": torch.sinh, "cosh": torch.cosh, "sin": torch.sin, "cos": torch.cos, 
        "tan": torch.tan,
        "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "asinh": torch.asinh, "acosh": lambda v: torch.acosh(v + 1),
        "atanh": torch.atanh, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv,
        "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "lgamma": torch.lgamma, "rint": torch.round,
        "normcdf": torch.special.ndtr, "abs": torch.abs, "isnan": torch.isnan, "j0": torch.special.bessel_j0,
        "cbrt": lambda v: v.pow(1 / 3), "finitef": torch.isfinite, "fast_expf": torch.exp, "fast_logf": torch.log, 
        "float_as_int": lambda v: v.view(torch.int32),
        "tgamma": lambda v: torch.lgamma(v).exp(), "nearbyint": torch.round,
    }  # fmt: skip
    for name, function in table.items():
        values = unit if name.startswith(("asin", "acos", "atan", "erfinv")) else x
        given = values + 1 if name == "acosh" else values
        expected = function(values)
        for module in (libdevice, cuda_libdevice):
            o = torch.empty(64, dtype=expected.dtype)
            library[(1,)](given, o, F=getattr(module, name), N=64)
            same(o, expected, rtol=2e-6, atol=2e-6)
    o = torch.empty(64, dtype=torch.float64)
    library[(1,)](x.double(), o, F=libdevice.tanh, N=64)
    same(o, x.double().tanh(), rtol=1e-14)


@triton.jit
def library_of_two(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, libdevice.pow(a, b))
    tl.store(o + N + i, libdevice.atan2(a, b))
    tl.store(o + 2 * N + i, libdevice.fmod(a, b))
    tl.store(o + 3 * N + i, libdevice.pow(a, 2.0))
    tl.store(o + 4 * N + i, libdevice.fma(a, b, a))
    tl.store(o + 5 * N + i, libdevice.div_rn(a, b))
    tl.store(o + 6 * N + i, libdevice.hypot(a, b))
    tl.store(o + 7 * N + i, libdevice.copysign(a, -b))


@check
def library_functions_of_two():
    x, y = rand(64).abs() + 0.1, rand(64, seed=1).abs() + 0.1
    o = torch.empty(8 * 64)
    library_of_two[(1,)](x, y, o, N=64)
    rows = [x.pow(y), torch.atan2(x, y), torch.fmod(x, y), x * x, x * y + x, x / y, torch.hypot(x, y), -x]
    for got, want in zip(o.view(8, 64), rows, strict=True):
        same(got, want, rtol=1e-6, atol=1e-6)


@triton.jit
def python_words(x, o, n, m, flag, N: tl.constexpr):
    HALF = N // 2
    i = tl.arange(0, HALF)
    low = tl.load(x + i, mask=(i < n) and (i >= m), other=-1.0)
    tl.store(o + i, low)
    tl.store(o + HALF + i, tl.load(x + HALF + i, mask=not (i < m or i >= n), other=-2.0))
    steps = 0
    while steps < 3:
        steps += 1
    total = 0.0
    for k in range(max(n - m, 1)):
        total += k.to(tl.float32)
    if flag and n > 0:
        tl.store(o + N, total + steps)
    else:
        tl.store(o + N, -total)
    tl.store(o + N + 1, min(n, m, 2).to(tl.float32))


@check
def python_words_mean_what_they_mean_to_the_compiler():
    x, o = rand(64), torch.zeros(66)
    python_words[(1,)](x, o, 20, 5, True, N=64)
    i = torch.arange(32)
    inside = (i < 20) & (i >= 5)
    same(o[:32], torch.where(inside, x[:32], -1.0))
    same(o[32:64], torch.where(inside, x[32:], -2.0))
    assert o[64] == sum(range(15)) + 3 and o[65] == 2


@triton.jit
def float_argument(x, o, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i) * scale  # promotes to float32, as on the GPU
    tl.store(o + i, v * 4096.0 / 4096.0)


@check
def a_float_argument_is_float32():
    x, o = torch.full((16,), 60000.0, dtype=torch.float16), torch.empty(16)
    float_argument[(1,)](x, o, 1.5, N=16)
    same(o, torch.full((16,), 90000.0))


@triton.jit
def shift(x, o, n, offset, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o + i, tl.load(x + i + offset), mask=i < n)


@check
def out_of_bounds_is_told():
    x, o = rand(100), torch.empty(100)
    for offset, says in (
        (0, "reads 28 elements past the end of x (100) in program (1, 0, 0)"),
        (-3, "reads 3 elements before the start of x"),
    ):
        try:
            shift[(2,)](x, o, 100, offset, N=64)
        except OutOfBoundsError as error:
            assert says in str(error) and error.kernel == "shift" and error.argument == "x", error
        else:
            raise AssertionError("not told")
    try:
        casting[(1,)](rand(64), torch.empty(60), N=64)
    except OutOfBoundsError as error:
        assert "writes 4 elements past the end of o (60)" in str(error), error
    else:
        raise AssertionError("not told")
    big = rand(200)
    casting[(1,)](big[:60], torch.empty(64), N=64)  # inside the storage of the view's base: allowed
    neighbours = [torch.zeros(64) for _ in range(64)]  # landing in another tensor is told too
    try:
        shift[(1,)](neighbours[0], neighbours[1], 64, (neighbours[1].data_ptr() - neighbours[0].data_ptr()) // 4, N=64)
    except OutOfBoundsError:
        pass
    else:
        raise AssertionError("not told")


@check
def margins_are_out_of_bounds():
    from workbench.judge.workers.arena import Arena

    arena = Arena("nan")
    x, o = arena.place(rand(100), "x"), arena.place(torch.zeros(128), "o")
    casting[(1,)](x[:64], o, N=64)
    same(o[:64], x[:64])
    try:
        shift[(2,)](x, o, 128, 0, N=64)
    except OutOfBoundsError as error:
        assert "reads 28 elements past the end of x (100)" in str(error), error
    else:
        raise AssertionError("not told")


@triton.jit
def assembly(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1))


@triton.jit
def scaled(a, b, s, o):
    i, k = tl.arange(0, 32), tl.arange(0, 64)
    x = tl.load(a + i[:, None] * 64 + k[None, :])
    y = tl.load(b + k[:, None] * 32 + i[None, :])
    g = tl.load(s + i[:, None] * 2 + tl.arange(0, 2)[None, :])
    tl.store(o + i[:, None] * 32 + i[None, :], tl.dot_scaled(x, g, "e5m2", y, None, "e5m2"))


@check
def what_cannot_be_interpreted_says_so():
    for launch in (
        lambda: assembly[(1,)](rand(8), torch.empty(8), N=8),
        lambda: scaled[(1,)](
            torch.zeros(32, 64, dtype=torch.uint8),
            torch.zeros(64, 32, dtype=torch.uint8),
            torch.zeros(32, 2, dtype=torch.uint8),
            torch.empty(32, 32),
        ),
    ):
        try:
            launch()
        except InterpreterUnsupported as error:
            assert "interpret" in error.reason, error
        else:
            raise AssertionError("not told")


@triton.autotune(configs=[triton.Config({"N": 64}), triton.Config({"N": 32})], key=["n"], reset_to_zero=["o"])
@triton.jit
def tuned(x, o, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(o + i, tl.load(x + i, mask=i < n), mask=i < n)


@check
def autotune_takes_its_first_configuration():
    x, o = rand(100), torch.ones(100)
    tuned[lambda meta: (triton.cdiv(100, meta["N"]),)](x, o, 100)
    same(o, x)
    assert tuned.best_config.kwargs == {"N": 64}


def _closure(scale):
    factor = tl.constexpr(scale)

    @triton.jit
    def kernel(x, o, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(o + i, tl.load(x + i) * factor)

    return kernel


@check
def kernels_made_in_functions():
    x, o = rand(16), torch.empty(16)
    _closure(3.0)[(1,)](x, o, N=16)
    same(o, x * 3)
    _closure(4.0)[(1,)](x, o, N=16)
    same(o, x * 4)


@check
def unwritten_elements_are_nan():
    from workbench.build.tune import load_candidate

    source = "import torch\ndef f(x):\n    return torch.empty_like(x), x.new_empty(3, dtype=torch.int32), torch.empty(2, device='cuda')\n"
    import tempfile
    from pathlib import Path

    made = load_candidate(source, "f", {}, directory=Path(tempfile.mkdtemp()), name="empties")(rand(4))
    assert made[0].isnan().all() and (made[1] == 2**31 - 1).all() and made[2].isnan().all()
    assert made[2].device.type == "cuda" and made[2].numpy().shape == (2,)  # to the candidate's eyes it is on the GPU


@check
def the_device_is_pretended_below_other_modes():
    import tempfile
    from pathlib import Path

    from workbench.build.tune import load_candidate
    from workbench.judge.workers.arena import Arena, PoisonedEmpty

    source = "def f(x):\n    return x.is_cuda, x.device.type, x.new_empty(2).device.type\n"
    ask = load_candidate(source, "f", {}, directory=Path(tempfile.mkdtemp()), name="asking")
    assert ask(rand(2)) == (True, "cuda", "cuda")
    with PoisonedEmpty(Arena("nan")):
        assert ask(rand(2)) == (True, "cuda", "cuda")


@triton.jit
def random_numbers(o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.rand(7, i))


@check
def philox_is_uniform():
    o = torch.empty(4096)
    random_numbers[(1,)](o, N=4096)
    assert o.min() >= 0 and o.max() < 1 and abs(o.mean() - 0.5) < 0.03 and len(o.unique()) > 4000


@triton.jit
def integers(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, a // b)
    tl.store(o + N + i, a % b)
    tl.store(o + 2 * N + i, a >> 1)
    tl.store(o + 3 * N + i, a & b)
    tl.store(o + 4 * N + i, tl.cdiv(a, b))


@check
def integers_divide_as_in_c():
    x, y = torch.randint(-50, 50, (64,), dtype=torch.int32), torch.randint(1, 9, (64,), dtype=torch.int32)
    o = torch.empty(5 * 64, dtype=torch.int32)
    integers[(1,)](x, y, o, N=64)
    quotient = torch.div(x, y, rounding_mode="trunc")
    rows = [quotient, x - quotient * y, x >> 1, x & y, torch.div(x + y - 1, y, rounding_mode="trunc")]
    for got, want in zip(o.view(5, 64), rows, strict=True):
        same(got, want)
    integers[(1,)](x, torch.zeros_like(y), o, N=64)  # division by zero does not trap


for name in sys.argv[1:] or list(CHECKS):
    try:
        CHECKS[name]()
        print(json.dumps({"check": name, "failed": ""}), flush=True)
    except BaseException:
        print(json.dumps({"check": name, "failed": traceback.format_exc()[-1500:]}), flush=True)

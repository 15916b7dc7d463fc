"""One elementwise map as a CUDA C++ expression, and the types and functions that every CUDA expert's source is written with."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.knowledge.axes import UnsupportedError

C_TYPES = {
    "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double", "int8": "signed char",
    "uint8": "unsigned char", "int16": "short", "int32": "int", "int64": "long long", "bool": "bool",
}  # fmt: skip


class CExpr(NamedTuple):
    """Text of an expression; `whole` where it needs no parentheses as an operand."""

    text: str
    whole: bool = True

    @property
    def operand(self) -> str:
        return self.text if self.whole else f"({self.text})"


def c_type(dtype: str) -> str:
    """The C++ type of a dtype.

    Raises:
        UnsupportedError: there is none.
    """
    if dtype not in C_TYPES:
        raise UnsupportedError(f"{dtype} in CUDA C++")
    return C_TYPES[dtype]


def c_constant(value: Any, dtype: str = "") -> CExpr:
    """A Python number as it is written in a computation of `dtype`."""
    if isinstance(value, bool) and not dtype.startswith("float"):
        return CExpr("true" if value else "false")
    if dtype.startswith("float") or (isinstance(value, float) and not dtype):
        number = float(value)
        if not math.isfinite(number):
            return CExpr(_special(number, dtype))
        text = repr(number) + ("" if dtype == "float64" else "f")
        return CExpr(text, not text.startswith("-"))
    if isinstance(value, float):
        value = int(value)
    text = str(value) + ("LL" if abs(int(value)) >= 2**31 else "")
    return CExpr(text, not text.startswith("-"))


def c_expression(op: str, args: Sequence[CExpr], dtype: str) -> CExpr:
    """The map `op` of these operands, computed in `dtype`.

    Raises:
        UnsupportedError: no spelling is known.
    """
    if op == "cast":
        return CExpr(f"static_cast<{c_type(dtype)}>({args[0].text})")
    if op == "mul" and any(arg.text in ("1", "1.0f", "1.0") for arg in args):
        return next((arg for arg in args if arg.text not in ("1", "1.0f", "1.0")), args[0])
    if op in _FUNCTIONS:
        suffix = "" if dtype == "float64" else "f"
        return CExpr(f"{_FUNCTIONS[op]}{suffix}({', '.join(arg.text for arg in args)})")
    if op in _FAST and dtype != "float64":
        return CExpr(_FAST[op](*args))
    writer = _WRITERS.get(op)
    if writer is None:
        raise UnsupportedError(f"the elementwise op {op} in CUDA C++")
    return writer(*args)


def _special(number: float, dtype: str) -> str:
    if dtype == "float64":
        return f"__longlong_as_double({struct.unpack('<q', struct.pack('<d', number))[0]:#x}LL)"
    return f"__int_as_float({struct.unpack('<I', struct.pack('<f', number))[0]:#x})"


def _infix(sign: str) -> Callable[[CExpr, CExpr], CExpr]:
    return lambda left, right: CExpr(f"{left.operand} {sign} {right.operand}", False)


_FUNCTIONS = {
    "sqrt": "sqrt", "rsqrt": "rsqrt", "log": "log", "log2": "log2", "exp2": "exp2", "sin": "sin", "cos": "cos", "erf": "erf",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "tanh": "tanh", "log1p": "log1p", "expm1": "expm1", "pow": "pow", "fmod": "fmod",
    "tan": "tan", "atan": "atan", "asin": "asin", "acos": "acos", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh",
    "atanh": "atanh", "erfc": "erfc", "atan2": "atan2",
}  # fmt: skip

# The special function unit's own exponential: a few units in the last place, as Triton's experts have it.
_FAST: Mapping[str, Callable[..., str]] = {
    "exp": lambda x: f"fast_exp({x.text})",
    "sigmoid": lambda x: f"__fdividef(1.0f, 1.0f + fast_exp(-{x.operand}))",
}

_WRITERS: Mapping[str, Callable[..., CExpr]] = {
    "add": _infix("+"), "sub": _infix("-"), "mul": _infix("*"), "div": _infix("/"), "bitwise_and": _infix("&"), "bitwise_or": _infix("|"),
    "bitwise_xor": _infix("^"), "logical_and": _infix("&&"), "logical_or": _infix("||"), "logical_xor": _infix("!="), "eq": _infix("=="),
    "ne": _infix("!="), "lt": _infix("<"), "le": _infix("<="), "gt": _infix(">"), "ge": _infix(">="),
    "inside": lambda x, size: CExpr(f"{x.operand} >= 0 && {x.operand} < {size.operand}", False),
    "neg": lambda x: CExpr(f"-{x.operand}", False), "logical_not": lambda x: CExpr(f"!{x.operand}", False),
    "bitwise_not": lambda x: CExpr(f"~{x.operand}", False), "isnan": lambda x: CExpr(f"{x.operand} != {x.operand}", False),
    "abs": lambda x: CExpr(f"absolute({x.text})"), "exp": lambda x: CExpr(f"exp({x.text})"),
    "sigmoid": lambda x: CExpr(f"1.0 / (1.0 + exp(-{x.operand}))", False),
    "where": lambda test, x, y: CExpr(f"{test.operand} ? {x.operand} : {y.operand}", False),
    "maximum": lambda x, y: CExpr(f"Max::of({x.text}, {y.text})"), "minimum": lambda x, y: CExpr(f"Min::of({x.text}, {y.text})"),
    # Written so that NaN comes through, as it does in torch: a comparison with NaN is false.
    "at_least": lambda x, low: CExpr(f"{x.operand} < {low.operand} ? {low.operand} : {x.operand}", False),
    "at_most": lambda x, high: CExpr(f"{x.operand} > {high.operand} ? {high.operand} : {x.operand}", False),
}  # fmt: skip

PRELUDE = """\
// A few neighbouring elements, moved 16 bytes at once.
template <typename T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Pack { T at[COUNT]; };

template <int BYTES> struct Word { using type = uint4; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<4> { using type = unsigned; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<1> { using type = unsigned char; };

template <typename T, int COUNT>
__device__ __forceinline__ Pack<T, COUNT> fetch(const T* __restrict__ from) {
  using W = typename Word<sizeof(T) * COUNT>::type;
  Pack<T, COUNT> pack;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) * COUNT / sizeof(W)); ++i)
    reinterpret_cast<W*>(&pack)[i] = FETCH(reinterpret_cast<const W*>(from) + i);
  return pack;
}

template <typename T, int COUNT>
__device__ __forceinline__ void put(T* to, const Pack<T, COUNT>& pack) {
  using W = typename Word<sizeof(T) * COUNT>::type;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) * COUNT / sizeof(W)); ++i)
    PUT(reinterpret_cast<W*>(to) + i, reinterpret_cast<const W*>(&pack)[i]);
}

// What a thread holds is converted again where it is used again: kept as float, it would take the registers of a second block.
template <typename T, int COUNT>
__device__ __forceinline__ void again(Pack<T, COUNT>& pack) {
#pragma unroll
  for (int i = 0; i < int(sizeof(T) * COUNT / 4); ++i) asm volatile("" : "+r"(reinterpret_cast<unsigned*>(&pack)[i]));
}

// Half types are computed with as float.
template <typename T> __device__ __forceinline__ T up(T x) { return x; }
__device__ __forceinline__ float up(__half x) { return __half2float(x); }
__device__ __forceinline__ float up(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T> struct Down { template <typename F> static __device__ __forceinline__ T of(F x) { return static_cast<T>(x); } };
template <> struct Down<__half> {
  template <typename F> static __device__ __forceinline__ __half of(F x) { return __float2half_rn(static_cast<float>(x)); }
};
template <> struct Down<__nv_bfloat16> {
  template <typename F> static __device__ __forceinline__ __nv_bfloat16 of(F x) { return __float2bfloat16_rn(static_cast<float>(x)); }
};
template <typename T> __device__ __forceinline__ T absolute(T x) { return x < T(0) ? -x : x; }
__device__ __forceinline__ float absolute(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute(double x) { return fabs(x); }

// NaN wins, as in PyTorch.
struct Sum { template <typename T> static __device__ __forceinline__ T of(T a, T b) { return a + b; } };
struct Prod { template <typename T> static __device__ __forceinline__ T of(T a, T b) { return a * b; } };
struct Max {
  template <typename T> static __device__ __forceinline__ T of(T a, T b) { return a > b || a != a ? a : b; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  static __device__ __forceinline__ float of(float a, float b) {  // one instruction in place of four
    float higher;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(higher) : "f"(a), "f"(b));
    return higher;
  }
#endif
};
struct Min {
  template <typename T> static __device__ __forceinline__ T of(T a, T b) { return a < b || a != a ? a : b; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  static __device__ __forceinline__ float of(float a, float b) {
    float lower;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(lower) : "f"(a), "f"(b));
    return lower;
  }
#endif
};

// As __expf, without its four instructions for results below 1e-38, which are zero here.
__device__ __forceinline__ float fast_exp(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.442695041f));
  return power;
#else
  return expf(x);
#endif
}

// exp(x - peak), where `scaled` is peak * log2(e) and moderate: one instruction in front of the exponential.
__device__ __forceinline__ float exp_below(float x, float scaled) {
  const float exponent = fmaf(x, 1.442695041f, -scaled);
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
#else
  return exp2f(exponent);
#endif
}
"""
"""What every source begins with. ``FETCH`` and ``PUT`` are macros: plain accesses, or such that leave the cache first."""

INCLUDES = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"

ACCESSES = {
    "default": ("*(address)", "*(address) = value"),
    "stream": ("__ldcs(address)", "__stcs(address, value)"),
}
"""How words are read and written, by the choice of cache hints."""


def access_macros(cache: str) -> str:
    """``FETCH`` and ``PUT``."""
    fetch, put = ACCESSES[cache]
    return f"#define FETCH(address) {fetch}\n#define PUT(address, value) {put}\n"

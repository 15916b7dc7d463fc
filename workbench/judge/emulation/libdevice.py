"""CUDA's and ROCm's math library on numpy arrays, for the interpreter, which has none of it.

A function is found by the symbol that Triton's wrappers ask the GPU's compiler for, such as ``__nv_tanhf`` or ``__ocml_tanh_f32``. Torch
computes what numpy lacks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from workbench.judge.emulation.unsupported import InterpreterUnsupported

Function = Callable[..., np.ndarray]


def _torch(function: Callable[..., torch.Tensor]) -> Function:
    def call(*args: np.ndarray) -> np.ndarray:
        with torch._C.DisableTorchFunction():
            made: np.ndarray = function(*(torch.from_numpy(np.array(arg, copy=True)) for arg in args)).numpy()
            return made

    return call


def _wider(function: Callable[..., Any]) -> Function:
    """Computed in float64, so that one rounding remains."""
    return lambda *args: function(*(arg.astype(np.float64) for arg in args)).astype(args[0].dtype)


def _bits(unsigned: Callable[[int], int], width: Callable[[np.ndarray], int]) -> Function:
    def call(values: np.ndarray) -> np.ndarray:
        mask = (1 << width(values)) - 1
        return np.array([unsigned(int(value) & mask) for value in values.ravel()], dtype=np.int32).reshape(values.shape)

    return call


_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "floor", "ceil", "trunc",
        "rint", "fmod", "hypot", "copysign", "nextafter", "cbrt", "ldexp", "sqrt",
    )},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")},
    "abs": np.abs, "fabs": np.abs, "llabs": np.abs, "pow": np.power, "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)).astype(x.dtype),
    "exp10": lambda x: np.power(x.dtype.type(10), x), "sinpi": _wider(lambda x: np.sin(np.pi * np.fmod(x, 2))),
    "cospi": _wider(lambda x: np.cos(np.pi * np.fmod(x, 2))), "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "rcbrt": lambda x: (1 / np.cbrt(x)).astype(x.dtype), "rhypot": lambda x, y: (1 / np.hypot(x, y)).astype(x.dtype),
    "rcp": lambda x: (1 / x).astype(x.dtype), "nearbyint": np.rint, "remainder": _wider(lambda x, y: x - y * np.rint(x / y)),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x).astype(x.dtype), "scalbn": np.ldexp,
    "llrint": lambda x: np.rint(x).astype(np.int64), "llround": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x).astype(np.int64),
    "fma": lambda x, y, z: (x.astype(np.float64) * y + z).astype(x.dtype), "saturate": lambda x: np.clip(x, 0, 1),
    "fdivide": np.divide, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "signbit": lambda x: np.signbit(x).astype(np.int32), "isnan": lambda x: np.isnan(x).astype(np.int32),
    "isinf": lambda x: np.isinf(x).astype(np.int32), "isfinite": lambda x: np.isfinite(x).astype(np.int32),
    "ilogb": lambda x: (np.frexp(x)[1] - 1).astype(np.int32), "logb": lambda x: (np.frexp(x)[1] - 1).astype(x.dtype),
    "erf": _torch(torch.special.erf), "erfc": _torch(torch.special.erfc), "erfinv": _torch(torch.special.erfinv),
    "erfcx": _torch(torch.special.erfcx), "erfcinv": _wider(lambda x: _torch(torch.special.erfinv)(1 - x)),
    "lgamma": _torch(torch.lgamma), "tgamma": _wider(np.vectorize(lambda x: math.gamma(x) if math.isfinite(x) else x, otypes=[float])),
    "normcdf": _torch(torch.special.ndtr), "normcdfinv": _torch(torch.special.ndtri),
    "cyl_bessel_i0": _torch(torch.special.i0), "cyl_bessel_i1": _torch(torch.special.i1), "i0": _torch(torch.special.i0),
    "i1": _torch(torch.special.i1), "j0": _torch(torch.special.bessel_j0), "j1": _torch(torch.special.bessel_j1),
    "y0": _torch(torch.special.bessel_y0), "y1": _torch(torch.special.bessel_y1),
    "popc": _bits(int.bit_count, lambda x: x.itemsize * 8),
    "clz": lambda x: _bits(lambda value: x.itemsize * 8 - value.bit_length(), lambda _: x.itemsize * 8)(x),
    "ffs": _bits(lambda value: (value & -value).bit_length(), lambda x: x.itemsize * 8),
    "float_as_int": lambda x: x.view(np.int32), "float_as_uint": lambda x: x.view(np.uint32), "int_as_float": lambda x: x.view(np.float32),
    "uint_as_float": lambda x: x.view(np.float32), "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64), "mul24": np.multiply, "umul24": np.multiply,
    "mulhi": lambda x, y: ((x.astype(np.int64) * y) >> 32).astype(np.int32),
    "umulhi": lambda x, y: ((x.astype(np.uint64) * y) >> np.uint64(32)).astype(np.uint32),
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z), "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "rnorm3d": lambda x, y, z: 1 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1 / np.sqrt(x * x + y * y + z * z + w * w),
}  # fmt: skip

_ROUNDED = re.compile(r"(f|d)(add|sub|mul|div|sqrt|rsqrt|rcp)_r[nzdu]")
_CONVERTED = re.compile(r"(?:float|double|u?int|u?ll)2(float|double|int|uint|ll|ull)_r([nzdu])")
_TYPES = {"float": np.float32, "double": np.float64, "int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
_STEPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"n": np.rint, "z": np.trunc, "d": np.floor, "u": np.ceil}


def find(symbol: str) -> Function:
    """The function behind a symbol of libdevice or ocml.

    Raises:
        InterpreterUnsupported: there is no such function here.
    """
    name = re.sub(r"^(__nv_|__ocml_|__hip_)", "", symbol)
    name = re.sub(r"_f(32|64)$", "", name).removeprefix("fast_")
    if match := _ROUNDED.fullmatch(name):
        return _FUNCTIONS[match[2]]
    if match := _CONVERTED.fullmatch(name):
        kind, step = _TYPES[match[1]], _STEPS[match[2]]
        return lambda x: (step(x) if np.issubdtype(kind, np.integer) and x.dtype.kind == "f" else x).astype(kind)
    name = re.sub(r"^fma(f?)_r[nzdu]$", "fma", name)
    # Single precision has an f at the end, double a d in the predicates, long long an ll.
    tries = (
        name,
        name.removesuffix("f"),
        name.removesuffix("d"),
        name.removesuffix("ll"),
        {"pown": "powi", "finitef": "isfinite"}.get(name, ""),
    )
    for tried in tries:
        if tried in _FUNCTIONS:
            return _FUNCTIONS[tried]
    raise InterpreterUnsupported(f"the library function {symbol} can't be interpreted")

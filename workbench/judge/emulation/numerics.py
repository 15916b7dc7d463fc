"""Numbers that numpy lacks. Triton's interpreter keeps bfloat16 and float8 as their bits; here they become float32 and back.

Rounding is to nearest, ties to even, as the hardware's; float8 saturates at its largest finite value, as Triton's conversions do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl

from workbench.judge.emulation.unsupported import InterpreterUnsupported

_FLOAT8 = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
_PLAIN = {
    "int1": np.bool_, "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64, "fp16": np.float16, "fp32": np.float32, "fp64": np.float64,
}  # fmt: skip


def is_soft(dtype: Any) -> bool:
    """Whether numpy has no such type, so that the data are bits: bfloat16 and float8."""
    name = dtype.name
    return name == "bf16" or name in _FLOAT8 or name == "fp8e4b15"


def decode(data: np.ndarray, dtype: Any) -> np.ndarray:
    """Numbers of what the interpreter holds: bits of a soft type become float32, all else stays as it is."""
    name = dtype.name
    if name == "bf16" and data.dtype == np.uint16:
        return (data.astype(np.uint32) << 16).view(np.float32)
    if name in _FLOAT8 and data.dtype == np.uint8:
        bits = torch.from_numpy(np.array(data, copy=True)).view(_FLOAT8[name])
        values: np.ndarray = bits.to(torch.float32).numpy()
        return values
    if name == "fp8e4b15":
        raise InterpreterUnsupported("fp8e4b15 has no conversion on the CPU")
    return data


def encode(values: np.ndarray, dtype: Any) -> np.ndarray:
    """What the interpreter holds of numbers, in a type: the inverse of `decode`, rounding where it must."""
    name = dtype.name
    if name == "bf16":
        return _to_bfloat16(values)
    if name in _FLOAT8:
        kind = _FLOAT8[name]
        limit = torch.finfo(kind).max
        numbers = torch.from_numpy(np.array(values, dtype=np.float32, copy=True))
        packed: np.ndarray = numbers.clamp(-limit, limit).to(kind).view(torch.uint8).numpy()
        return packed
    if name == "fp8e4b15":
        raise InterpreterUnsupported("fp8e4b15 has no conversion on the CPU")
    wanted = _PLAIN.get(name)
    return values if wanted is None or values.dtype == wanted else values.astype(wanted)


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.float64:
        # float32 in between would round twice: move to the nearest float32 on the odd side first.
        single = values.astype(np.float32)
        bits = single.view(np.uint32)
        inexact = (single.astype(np.float64) != values) & np.isfinite(values)
        toward_zero = np.where(np.abs(single.astype(np.float64)) > np.abs(values), bits - 1, bits)
        bits = np.where(inexact, toward_zero | 1, bits).astype(np.uint32)
    else:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    result = rounded.astype(np.uint16)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    if nan.any():
        result[nan] = 0x7FC0
    return result.reshape(np.shape(values))


def truncate_bfloat16(values: np.ndarray) -> np.ndarray:
    """Bits of float32 numbers rounded towards zero, as ``fp_downcast_rounding="rtz"`` asks."""
    return (np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(values.shape)


def convert(data: np.ndarray, source: Any, target: Any) -> np.ndarray:
    """Data of one scalar type as data of another, with the value kept as far as the target can."""
    if target == tl.int1:
        return np.asarray(decode(data, source) != 0)
    numbers = decode(data, source)
    if is_soft(target) and numbers.dtype.kind in "biu":
        numbers = numbers.astype(np.float64)
    if numbers.dtype.kind == "f" and target.is_int():
        # What the hardware does: NaN becomes 0 and all else saturates.
        info = np.iinfo(_PLAIN[target.name])
        numbers = np.clip(
            np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf), float(info.min), float(info.max)
        )
        whole = np.trunc(numbers)
        return np.where(whole >= float(info.max), info.max, whole.astype(np.int64 if info.min < 0 else np.uint64)).astype(info.dtype)
    return encode(numbers, target)

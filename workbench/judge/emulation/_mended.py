"""The interpreter's operations where Triton's own are wrong, missing or slow. `interpreter.mend` puts them in place.

Each function here stands for a method of `triton.runtime.interpreter.InterpreterBuilder`, and is held against torch by a test. What was
wrong:

- bfloat16 and float8 are held as bits, and arithmetic, products, reductions and casts from integers worked on the bits,
- float32 to bfloat16 truncated, and to float8 rounded without ties or carries,
- ``maximum``, ``minimum`` and ``clamp`` spread NaN where the hardware drops it,
- any load or store could reach any address,
- library functions, and reductions or scans with a combine function of one's own, were missing or took a Python step per element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from workbench.judge.emulation import libdevice, numerics
from workbench.judge.emulation.memory import Memory, origin_of
from workbench.judge.emulation.numerics import decode, encode, is_soft
from workbench.judge.emulation.unsupported import InterpreterUnsupported

_native = interpreter._interpreter
_ir = interpreter._ir


def _dtype_of(dtype: Any) -> np.dtype:
    found: np.dtype = interpreter._get_np_dtype(dtype)
    return found


class Watch:
    """What sees the operations of the program that runs. The plain one sees nothing; `traffic` has one that counts."""

    skips_memory = False
    """Whether loads give zeros and stores do nothing."""

    def accessed(self, verb: str, pointers: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: int | None) -> None: ...

    def waited(self) -> None:
        """What follows can't be fetched before what came: a loop goes round, or the program's threads have to meet."""

    def computed(self, elements: int, weight: float = 1.0) -> None: ...

    def multiplied(self, m: int, n: int, k: int, batch: int, dtype: str) -> None: ...


class Now:
    """The launch that runs in this process; the interpreter is single-threaded."""

    memory: Memory | None = None
    watch: Watch = Watch()


def handle(data: np.ndarray, dtype: Any, origin: int | None = None) -> TensorHandle:
    """A handle whose pointer remembers its argument."""
    made = TensorHandle(data, dtype)
    if origin is not None:
        made.origin = origin
    return made


def numbers(arg: TensorHandle) -> np.ndarray:
    """The handle's values, as numbers that numpy can compute with."""
    return decode(arg.data, arg.dtype.scalar)


# Arithmetic


def binary_op(self: Any, lhs: TensorHandle, rhs: TensorHandle, op: Callable[..., np.ndarray]) -> TensorHandle:
    dtype = lhs.dtype.scalar
    left, right = lhs.data, rhs.data
    if dtype.is_floating():
        if is_soft(dtype):
            left, right = decode(left, dtype), decode(right, rhs.dtype.scalar)
        Now.watch.computed(left.size)
    output = op(left, right)
    if output.dtype == np.bool_:
        return TensorHandle(output, tl.int1)
    if dtype.is_ptr():
        return handle(output, dtype, origin_of(lhs, rhs))
    return TensorHandle(encode(output, dtype), dtype)


def unary_op(self: Any, arg: TensorHandle, op: Callable[..., np.ndarray]) -> TensorHandle:
    dtype = arg.dtype.scalar
    if dtype.is_floating():
        Now.watch.computed(arg.data.size, 4.0)
    return TensorHandle(encode(op(numbers(arg)), dtype), dtype)


def ternary_op(self: Any, first: TensorHandle, second: TensorHandle, third: TensorHandle, op: Callable[..., np.ndarray]) -> TensorHandle:
    dtype = third.dtype.scalar
    if op is np.where:
        made = np.where(first.data.astype(bool, copy=False), second.data, third.data)
        return handle(made, dtype, origin_of(second, third))
    Now.watch.computed(third.data.size)
    return TensorHandle(encode(op(numbers(first), numbers(second), numbers(third)), dtype), dtype)


def create_fma(self: Any, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
    dtype = z.dtype.scalar
    Now.watch.computed(z.data.size, 2.0)
    a, b, c = numbers(x), numbers(y), numbers(z)
    wide = a.astype(np.float64) * b + c if a.dtype == np.float32 else a * b + c
    return TensorHandle(encode(wide, dtype), dtype)


def create_clampf(self: Any, arg: TensorHandle, low: TensorHandle, high: TensorHandle, propagate_nans: Any) -> TensorHandle:
    keep = propagate_nans == _ir.PROPAGATE_NAN.ALL
    least, most = (np.minimum, np.maximum) if keep else (np.fmin, np.fmax)
    return ternary_op(self, arg, low, high, lambda x, lo, hi: least(most(x, lo), hi))


def create_maxnumf(self: Any, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
    return binary_op(self, lhs, rhs, np.fmax)


def create_minnumf(self: Any, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
    return binary_op(self, lhs, rhs, np.fmin)


def create_idiv(self: Any, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
    divisor = np.where(rhs.data == 0, 1, rhs.data).astype(rhs.data.dtype)  # the hardware does not trap
    return TensorHandle((lhs.data - np.fmod(lhs.data, divisor)) // divisor, lhs.dtype.scalar)


def create_erf(self: Any, arg: TensorHandle) -> TensorHandle:
    return unary_op(self, arg, libdevice.find("__nv_erf"))


def create_rsqrt(self: Any, arg: TensorHandle) -> TensorHandle:
    return unary_op(self, arg, libdevice.find("__nv_rsqrt"))


def create_dot(
    self: Any, a: TensorHandle, b: TensorHandle, d: TensorHandle, input_precision: Any, max_num_imprecise_acc: Any
) -> TensorHandle:
    *batch, m, k = a.data.shape
    n = b.data.shape[-1]
    Now.watch.multiplied(m, n, k, int(np.prod(batch, dtype=np.int64)), a.dtype.scalar.name)
    if Now.watch.skips_memory:
        return d
    left, right = numbers(a), numbers(b)
    exact = left.dtype.kind in "iu" or left.dtype == np.float64 or d.data.dtype == np.float64
    wide = np.float64 if exact else np.float32  # sums of integer products of a tile are exact in float64, and BLAS does them
    product = np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
    total = product + numbers(d)
    return TensorHandle(encode(total, d.dtype.scalar), d.dtype.scalar)


# Casts


def cast_impl(self: Any, src: TensorHandle, dst_type: Any) -> TensorHandle:
    target = dst_type.scalar
    return TensorHandle(numerics.convert(src.data, src.dtype.scalar, target), target)


def create_fp_to_fp(self: Any, src: TensorHandle, dst_type: Any, rounding_mode: Any) -> TensorHandle:
    target = dst_type.scalar
    if rounding_mode == _ir.ROUNDING_MODE.RTZ:
        if target != tl.bfloat16:
            raise InterpreterUnsupported(f"rounding to {target.name} towards zero can't be interpreted")
        return TensorHandle(numerics.truncate_bfloat16(numbers(src)), target)
    return cast_impl(self, src, dst_type)


def create_bitcast(self: Any, src: TensorHandle, dst_type: Any) -> TensorHandle:
    data = np.ascontiguousarray(src.data)
    return handle(data.view(_dtype_of(dst_type)), dst_type.scalar, origin_of(src))


# Pointers and memory


def create_addptr(self: Any, ptr: TensorHandle, offset: TensorHandle) -> TensorHandle:
    size = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
    steps = offset.data.astype(np.int64).view(np.uint64) * np.uint64(size)
    return handle(ptr.data + steps, ptr.dtype, origin_of(ptr))


def _access(verb: str, ptrs: TensorHandle, mask: TensorHandle | None) -> np.ndarray | None:
    itemsize = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
    used: np.ndarray | None = None
    if mask is not None:
        used = mask.data.astype(bool, copy=False)
        if used.all():
            used = None
    memory = Now.memory
    origin = origin_of(ptrs)
    if memory is not None:
        memory.check(ptrs.data, used, itemsize, origin, verb)
    Now.watch.accessed(verb, ptrs.data, used, itemsize, origin)
    return used


def create_masked_load(
    self: Any, ptrs: TensorHandle, mask: TensorHandle | None, other: TensorHandle | None, cache: Any, eviction: Any, is_volatile: Any
) -> TensorHandle:
    dtype = ptrs.get_element_ty()
    wanted = _dtype_of(dtype)
    used = _access("reads", ptrs, mask)
    if Now.watch.skips_memory and dtype.is_floating():
        return TensorHandle(np.zeros(ptrs.data.shape, wanted), dtype)
    filled = np.zeros(ptrs.data.shape, wanted) if other is None else other.data
    flags = np.ones(ptrs.data.shape, bool) if used is None else used
    return TensorHandle(_native.load(ptrs.data, flags, filled, wanted), dtype)


def create_load(self: Any, ptr: TensorHandle, cache: Any, eviction: Any, is_volatile: Any) -> TensorHandle:
    return create_masked_load(self, ptr, None, None, cache, eviction, is_volatile)


def create_masked_store(self: Any, ptrs: TensorHandle, value: TensorHandle, mask: TensorHandle | None, cache: Any, eviction: Any) -> None:
    used = _access("writes", ptrs, mask)
    if Now.watch.skips_memory:
        return
    flags = np.ones(ptrs.data.shape, bool) if used is None else used
    wanted = _dtype_of(ptrs.get_element_ty())
    _native.store(ptrs.data, value.data.astype(wanted, copy=False), flags)


def create_store(self: Any, ptr: TensorHandle, val: TensorHandle, cache: Any, eviction: Any) -> None:
    create_masked_store(self, ptr, val, None, cache, eviction)


def create_atomic_rmw(self: Any, op: Any, ptr: TensorHandle, val: TensorHandle, mask: TensorHandle, sem: Any, scope: Any) -> TensorHandle:
    used = _access("adds to", ptr, mask)
    dtype = val.dtype.scalar
    if Now.watch.skips_memory:
        return TensorHandle(np.zeros(ptr.data.shape, _dtype_of(dtype)), dtype)
    flags = np.ones(ptr.data.shape, bool) if used is None else np.ascontiguousarray(np.broadcast_to(used, ptr.data.shape))
    if dtype.is_floating() and op == _ir.ATOMIC_OP.FADD and dtype.primitive_bitwidth < 32:
        return _add_one_by_one(ptr.data, val, flags)
    old = _native.atomic_rmw(
        self.ir_rmw_op_to_interpreter_rmw_op[op],
        np.ascontiguousarray(ptr.data),
        np.ascontiguousarray(val.data),
        flags,
        self.ir_sem_to_interpreter_sem[sem],
    )
    return TensorHandle(old, dtype)


def _add_one_by_one(pointers: np.ndarray, val: TensorHandle, flags: np.ndarray) -> TensorHandle:
    """Atomic add of 16-bit floats: each addition is rounded, in the order of the elements."""
    dtype = val.dtype.scalar
    wanted = _dtype_of(dtype)
    values = np.broadcast_to(numbers(val), pointers.shape)
    old = np.zeros(pointers.shape, wanted)
    one, zero = np.ones(1, bool), np.zeros(1, wanted)
    for index in np.argwhere(flags):
        at = tuple(index)
        where = pointers[at].reshape(1)
        before = _native.load(where, one, zero, wanted)
        old[at] = before[0]
        _native.store(where, encode(decode(before, dtype).astype(np.float32) + np.float32(values[at]), dtype), one)
    return TensorHandle(old, dtype)


def create_atomic_cas(self: Any, ptr: TensorHandle, cmp: TensorHandle, val: TensorHandle, sem: Any, scope: Any) -> TensorHandle:
    _access("swaps", ptr, None)
    if Now.watch.skips_memory:
        return cmp  # the swap succeeds: a lock is free
    old = _native.atomic_cas(*(np.ascontiguousarray(arg.data) for arg in (ptr, cmp, val)), self.ir_sem_to_interpreter_sem[sem])
    return TensorHandle(old, cmp.dtype.scalar)


def keep_origin(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps an operation that rearranges its first operand, so that pointers keep their origin."""

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self, *args, **kwargs)
        origin = origin_of(*(arg for arg in args if isinstance(arg, TensorHandle)))
        if origin is not None:
            for item in made if isinstance(made, tuple) else (made,):
                item.origin = origin
        return made

    return wrapped


def keep_base_origin(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same for block pointers and tensor descriptors."""

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any) -> Any:
        pointers, mask = method(self, *args)
        origin = origin_of(self.base)
        if origin is not None:
            pointers.origin = origin
        return pointers, TensorHandle(mask, tl.int1) if isinstance(mask, np.ndarray) else mask

    return wrapped


def _with_padding(self: Any, pointers: TensorHandle, mask: TensorHandle, padding: Any) -> TensorHandle:
    dtype = pointers.get_element_ty()
    value = float("nan") if padding == _ir.PADDING_OPTION.PAD_NAN and dtype.is_floating() else 0.0
    other = TensorHandle(encode(np.full(pointers.data.shape, value, np.float32), dtype), dtype)
    return create_masked_load(self, pointers, mask, other, None, None, False)


def create_tensor_pointer_load(
    self: Any, ptr: Any, boundary_check: Any, padding: Any, cache: Any, eviction: Any, is_volatile: Any
) -> TensorHandle:
    pointers, mask = ptr.materialize_pointers(boundary_check)
    return _with_padding(self, pointers, mask, padding)


def create_descriptor_load(self: Any, desc: Any, indices: Any, cache: Any, eviction: Any) -> TensorHandle:
    pointers, mask = desc.materialize_pointers(indices)
    return _with_padding(self, pointers, mask, desc.padding)


# The rest


def create_histogram(self: Any, data: TensorHandle, bins: int, mask: TensorHandle | None) -> TensorHandle:
    values = data.data.ravel()
    inside = (values >= 0) & (values < bins)
    if mask is not None:
        inside &= mask.data.ravel().astype(bool)
    return TensorHandle(np.bincount(values[inside].astype(np.int64), minlength=bins).astype(np.int32), tl.int32)


def create_extern_elementwise(
    self: Any, lib: str, path: str, symbol: str, args: list[TensorHandle], ret_type: Any, is_pure: bool
) -> TensorHandle:
    function = libdevice.find(symbol)
    dtype = ret_type.scalar
    Now.watch.computed(args[0].data.size, 4.0)
    return TensorHandle(encode(np.asarray(function(*(numbers(arg) for arg in args))), dtype), dtype)


def create_inline_asm(self: Any, *args: Any, **kwargs: Any) -> TensorHandle:
    raise InterpreterUnsupported("inline assembly can't be interpreted")


def scalar_of(dtype: Any) -> Callable[[Any, float], TensorHandle]:
    """The builder's method that makes a constant of a soft type."""
    return lambda self, value: TensorHandle(encode(np.array([value], np.float32), dtype), dtype)


def missing(self: Any, name: str) -> Any:
    """``__getattr__`` of the builder: an operation that it lacks is not the candidate's fault."""
    if name.startswith("create_"):
        raise InterpreterUnsupported(f"the interpreter has no {name.removeprefix('create_')}")
    raise AttributeError(name)


METHODS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        binary_op, unary_op, ternary_op, create_fma, create_clampf, create_maxnumf, create_minnumf, create_idiv, create_erf, create_rsqrt,
        create_dot, cast_impl, create_fp_to_fp, create_bitcast, create_addptr, create_masked_load, create_load, create_masked_store,
        create_store, create_atomic_rmw, create_atomic_cas, create_tensor_pointer_load, create_descriptor_load, create_histogram,
        create_extern_elementwise, create_inline_asm,
    )
}  # fmt: skip
"""Replacements of the builder's methods, by name."""

REARRANGING = (
    "create_reshape", "create_trans", "create_expand_dims", "create_broadcast", "create_cat", "create_join", "create_split", "create_splat",
    "create_unsplat",
)  # fmt: skip


def as_argument(value: Any, origin: int | None) -> Any:
    """A launch's argument as the kernel sees it; tensors become pointers that remember `origin`."""
    if isinstance(value, bool):
        return tl.tensor(TensorHandle(np.array([value]), tl.int1), tl.int1)
    if isinstance(value, float):
        # A float argument is float32 on the device, and promotes like a tensor of that type.
        return tl.tensor(TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)
    if isinstance(value, torch.Tensor) or hasattr(value, "data_ptr"):
        made = interpreter._implicit_cvt(value)
        made.handle.origin = origin
        return made
    return interpreter._implicit_cvt(value)

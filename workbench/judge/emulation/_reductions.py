"""Reductions and scans of the interpreter: a Python step per element where the combine function is one's own, until here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from workbench.judge.emulation import numerics
from workbench.judge.emulation._mended import Now
from workbench.judge.emulation.numerics import encode, is_soft


def reduce_generic(self: Any, inputs: Any) -> Any:
    """A reduction with a combine function of one's own: halves the axis until one is left, in order."""
    axis = self.axis
    data = [item.handle.data for item in inputs]
    rank = data[0].ndim
    if axis is None:
        data, axis = [item.reshape(-1) for item in data], 0
    types = [item.dtype for item in inputs]
    while data[0].shape[axis] > 1:
        even, odd = ([np.take(item, np.arange(start, item.shape[axis], 2), axis) for item in data] for start in (0, 1))
        data = _combine(self.combine_fn, even, odd, types)
    done = [np.squeeze(item, axis) for item in data]
    if self.keep_dims:
        done = [item.reshape((1,) * rank) if self.axis is None else np.expand_dims(item, axis) for item in done]
    return [self.to_tensor(item if item.shape else item[()], dtype) for item, dtype in zip(done, types, strict=True)]


def scan_generic(self: Any, inputs: Any) -> Any:
    """An inclusive scan with a combine function of one's own, in log2(n) steps over whole blocks."""
    axis = self.axis
    data = [item.handle.data for item in inputs]
    types = [item.dtype for item in inputs]
    length = data[0].shape[axis]
    index = np.arange(length)
    moved = tuple(length if dim == axis else 1 for dim in range(data[0].ndim))
    step = 1
    while step < length:
        before = [np.take(item, np.maximum(index - step, 0), axis) for item in data]
        combined = _combine(self.combine_fn, before, data, types)
        reaches = (index >= step).reshape(moved)
        data = [np.where(reaches, new, old) for new, old in zip(combined, data, strict=True)]
        step *= 2
    return [self.to_tensor(item, dtype) for item, dtype in zip(data, types, strict=True)]


def cumulate(op: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """``cumsum`` or ``cumprod`` by doubling steps, as a GPU's warps do it: summing in sequence has far larger round-off."""

    def scan(self: Any, tensor: Any) -> Any:
        data = tensor.handle.data
        if not tensor.dtype.is_floating():
            accumulate = op.accumulate  # type: ignore[attr-defined]
            return [self.to_tensor(accumulate(data, axis=self.axis, dtype=data.dtype), tensor.dtype)]
        moved = np.moveaxis(np.array(data, copy=True), self.axis, -1)
        step = 1
        while step < moved.shape[-1]:
            moved[..., step:] = op(moved[..., step:], moved[..., :-step])  # the right side is complete before it is assigned
            step *= 2
        return [self.to_tensor(np.moveaxis(moved, -1, self.axis), tensor.dtype)]

    return scan


def _combine(function: Any, left: list[np.ndarray], right: list[np.ndarray], types: list[Any]) -> list[np.ndarray]:
    def tensors(items: list[np.ndarray]) -> list[Any]:
        return [
            tl.tensor(TensorHandle(item, dtype), tl.block_type(dtype, list(item.shape))) for item, dtype in zip(items, types, strict=True)
        ]

    result = function(*tensors(left), *tensors(right))
    made = result if isinstance(result, tuple) else (result,)
    shape = left[0].shape
    plain = []
    for item, dtype in zip(made, types, strict=True):
        data = item.handle.data if isinstance(item, tl.tensor) else np.asarray(item)
        plain.append(np.broadcast_to(encode(data, dtype) if not is_soft(dtype) else data, shape))
    return plain


def widen_soft(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a reduction or scan: bfloat16 and float8 are reduced as float32 and rounded once at the end."""

    @functools.wraps(apply)
    def wrapped(self: Any, inputs: Any) -> Any:
        if not isinstance(inputs, tuple):
            return wrapped(self, (inputs,))[0]
        Now.watch.waited()
        for item in inputs:
            Now.watch.computed(item.handle.data.size)
        soft = [item.dtype if is_soft(item.dtype) else None for item in inputs]
        if not any(soft):
            return apply(self, inputs)
        wide = tuple(_cast(item, tl.float32) if kind else item for item, kind in zip(inputs, soft, strict=True))
        made = apply(self, wide)
        # Indices come after the values, and are no floats.
        return tuple(
            _cast(item, kind) if kind and item.dtype == tl.float32 else item
            for item, kind in zip(made, [*soft, *[None] * len(made)], strict=False)
        )

    return wrapped


def _cast(tensor: Any, dtype: Any) -> Any:
    data = numerics.convert(tensor.handle.data, tensor.dtype, dtype)
    kind = tl.block_type(dtype, list(tensor.type.shape)) if tensor.type.is_block() else dtype
    return tl.tensor(TensorHandle(data, dtype), kind)

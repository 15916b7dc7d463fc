"""Makes the interpreter quicker without changing what it computes: most of its time goes into describing types, over and over the same."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle


def quicken() -> None:
    """Patches types, tensors and the language's functions. Before the language is patched for the interpreter, once."""
    tl.core.block_type.__init__ = _cached_block_type(tl.core.block_type.__init__)
    tl.core.tensor.__init__ = _tensor_init
    interpreter._get_np_dtype = _cached_numpy_type(interpreter._get_np_dtype)
    interpreter._patch_attr = _patch_attr
    interpreter.InterpreterBuilder.create_splat = _create_splat


def _cached_block_type(original: Callable[..., None]) -> Callable[..., None]:
    known: dict[Any, dict[str, Any]] = {}

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        key = (element_ty.name, *(getattr(size, "value", size) for size in shape))
        found = known.get(key)
        if found is None:
            original(self, element_ty, shape)
            constants = [tl.constexpr(size) for size in self.shape]
            self.as_constants = tl.tuple(constants)
            self.numel_constant = tl.constexpr(int(np.prod([int(size) for size in self.shape])))
            known[key] = dict(self.__dict__)
        else:
            self.__dict__.update(found)
            self.element_ty = element_ty

    return init


def _tensor_init(self: Any, handle: Any, type: Any) -> None:
    self.handle = handle
    self.type = type
    self.dtype = type.scalar
    if type.is_block():
        self.shape = type.as_constants
        self.numel = type.numel_constant
    else:
        self.shape = _NO_SHAPE
        self.numel = _ONE


_NO_SHAPE = tl.tuple([])
_ONE = tl.constexpr(1)


def _cached_numpy_type(original: Callable[[Any], np.dtype]) -> Callable[[Any], np.dtype]:
    known: dict[str, np.dtype] = {}

    @functools.wraps(original)
    def of(dtype: Any) -> np.dtype:
        element = dtype.element_ty if isinstance(dtype, tl.core.block_type) else dtype
        if isinstance(element, tl.core.pointer_type):
            return _ADDRESS
        found = known.get(element.name)
        if found is None:
            found = known[element.name] = original(element)
        return found

    return of


_ADDRESS = np.dtype(np.uint64)


def _patch_attr(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
    # Underneath its check for a compiler's presence, which is not needed here.
    plain = getattr(member, "__wrapped__", member)

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = interpreter.interpreter_semantic
        return plain(*args, **kwargs)

    scope.set_attr(owner, name, call)


def _create_splat(self: Any, ret_ty: Any, arg: TensorHandle) -> TensorHandle:
    shape = builtins.tuple(int(size) for size in ret_ty.shape)
    data = arg.data[0] if arg.data.ndim else arg.data
    return TensorHandle(np.broadcast_to(data, shape), arg.dtype.scalar)

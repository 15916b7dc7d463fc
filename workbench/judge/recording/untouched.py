"""Tensors that have a shape and an address but no content, and ATen calls that cost nothing on them.

A launcher can so be run at sizes of gigabytes: memory that nobody touches is never committed. Calls on small tensors are computed for
real, because launchers take grids and offsets from them; on large ones only the result's shape is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from workbench.inputs import make_input, stream_seed
from workbench.judge.recording.launches import LibraryCall
from workbench.task import InputSpec

SMALL = 1 << 16
"""Elements up to which tensors have content and calls on them are computed."""

_SILENT = frozenset(
    {
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "item", "_local_scalar_dense", "detach", "lift_fresh",
        "lift_fresh_copy", "is_same_size", "sym_size", "sym_stride", "sym_numel", "size", "stride", "numel", "is_pinned", "resize_", "set_",
        "record_stream",
    }
)  # fmt: skip
_FILLS = frozenset(
    {
        "zeros", "zeros_like", "new_zeros", "zero_", "zero", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "fill_",
        "fill", "arange", "eye",
    }
)  # fmt: skip
_AS_EMPTY = frozenset(
    {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "clone", "_to_copy"}
)
_COPIES = frozenset({"clone", "copy_", "copy", "_to_copy", "contiguous", "cat", "stack"})


def make_untouched(specs: Sequence[InputSpec], seed: int = 0) -> list[Any]:
    """Arguments of the specs' shapes and strides. Small tensors, and integers (indices, lengths) of up to 2^22 elements, have content."""
    arguments: list[Any] = []
    # Not even a function mode that fills what `torch.empty` returns may see this.
    with torch._C.DisableTorchFunction():
        for position, spec in enumerate(specs):
            elements = math.prod(spec.shape)
            known = spec.values.kind != "bytes" or spec.values.value is not None
            drawn = known and (elements <= SMALL or (spec.dtype.startswith(("int", "uint")) and elements <= 1 << 22))
            if drawn or not spec.is_tensor:
                arguments.append(make_input(spec, stream_seed(seed, position)))
            else:
                arguments.append(torch.empty_strided(spec.shape, spec.strides, dtype=getattr(torch, spec.dtype)))
    return arguments


class Untouched(TorchDispatchMode):  # type: ignore[misc]
    """Keeps large tensors untouched while it is entered, and lists the ATen calls that would be kernels on a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[LibraryCall, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else torch's compiler is imported at the first call, which takes seconds. Nothing is compiled in here.
        return False

    @property
    def calls(self) -> tuple[LibraryCall, ...]:
        """In order of first appearance; equal ones are counted."""
        return tuple(
            LibraryCall(op=call.op, kind=call.kind, bytes=call.bytes, flops=call.flops, dtype=call.dtype, count=count)
            for call, count in self._calls.items()
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """``calls torch.<op>`` for each op that computes."""
        return tuple(dict.fromkeys(f"calls torch.{call.op}" for call in self._calls if call.kind == "compute"))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[-1]
        if _is_view(func) or name in _SILENT:
            return func(*args, **kwargs)
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        result = self._result(func, name, args, kwargs, inputs)
        self._note(func, name, args, kwargs, inputs, result)
        return result

    def _result(self, func: Any, name: str, args: Any, kwargs: Any, inputs: Sequence[torch.Tensor]) -> Any:
        large = any(tensor.numel() > SMALL for tensor in inputs)
        if large and func._schema.is_mutable:
            written = [
                kwargs[argument.name] if argument.name in kwargs else args[position]
                for position, argument in enumerate(func._schema.arguments)
                if argument.alias_info is not None and argument.alias_info.is_write and (argument.name in kwargs or position < len(args))
            ]
            return written[0] if len(func._schema.returns) == 1 else tuple(written) if func._schema.returns else None
        if name in _AS_EMPTY:
            made = _as_empty(name, args, kwargs)
            # Memory fresh from the system is zero anyway, so only what is small need be filled.
            return func(*args, **kwargs) if made.numel() <= SMALL else made
        if not large and math.prod(tensor.numel() for tensor in inputs) <= 1 << 28:
            return func(*args, **kwargs)
        try:
            # The first of these takes torch seconds to get ready for, so it is left to the ops that are not foreseen above.
            shaped = func(*tree_map(_on_meta, args), **{**tree_map(_on_meta, kwargs), **_meta_device(func, kwargs)})
        except Exception:  # an op whose result depends on values has no meta kernel
            return func(*args, **kwargs)
        if not large and all(leaf.numel() <= SMALL for leaf in tree_leaves(shaped) if isinstance(leaf, torch.Tensor)):
            return func(*args, **kwargs)
        return tree_map(_made_real, shaped)

    def _note(self, func: Any, name: str, args: Any, kwargs: Any, inputs: Iterable[torch.Tensor], result: Any) -> None:
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not outputs:
            return
        base = name.rstrip("_") if name not in _FILLS | _COPIES else name
        kind: Literal["compute", "copy", "fill"] = "fill" if name in _FILLS else "copy" if name in _COPIES else "compute"
        flops = sum(tensor.numel() for tensor in outputs) if kind == "compute" else 0
        counter = flop_registry.get(func._overloadpacket)
        if counter is not None:
            try:
                flops = int(counter(*args, **kwargs, out_val=result))
            except Exception:  # a formula that doesn't know this overload
                counter = None
        floats = [tensor.dtype for tensor in inputs if tensor.dtype.is_floating_point]
        read = {tensor.data_ptr(): _nbytes(tensor) for tensor in inputs}
        written = sum(_nbytes(tensor) for tensor in outputs)
        call = LibraryCall(
            op=base,
            kind=kind,
            bytes=sum(read.values()) + written if kind != "fill" else written,
            flops=flops,
            dtype=str(floats[0]).removeprefix("torch.") if counter is not None and floats else "",
        )
        self._calls[call] = self._calls.get(call, 0) + 1


def _as_empty(name: str, args: Any, kwargs: Any) -> torch.Tensor:
    options = {key: kwargs[key] for key in ("dtype", "layout", "device") if kwargs.get(key) is not None}
    like = {**options, **({"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") is not None else {})}
    if name.startswith("new_"):
        return args[0].new_empty(args[1], **options)
    if name in ("zeros", "ones", "full"):
        if name == "full" and "dtype" not in options:
            options["dtype"] = torch.tensor(args[1]).dtype if not isinstance(args[1], float) else torch.get_default_dtype()
        return torch.empty(args[0], **options)
    return torch.empty_like(args[0], **like)


def _is_view(func: Any) -> bool:
    returns = func._schema.returns
    return any(item.alias_info is not None and not item.alias_info.is_write for item in returns)


def _nbytes(tensor: torch.Tensor) -> int:
    sizes = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
    return int(math.prod(sizes) * tensor.element_size())


def _on_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _meta_device(func: Any, kwargs: Any) -> dict[str, Any]:
    accepts = any(argument.name == "device" for argument in func._schema.arguments)
    return {"device": "meta"} if accepts else {}


def _made_real(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return value

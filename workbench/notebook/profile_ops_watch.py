"""Watches the tensor calls that a piece of code makes, and the functions that make them.

Each call of PyTorch's API is timed and attributed to the innermost function of the person's own that made it: a module's ``forward``, a
function of the cell, or a line outside any function. Autograd's backward passes run outside Python and are not seen.
"""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from workbench.capture.importing import is_library_file

Signature = tuple[tuple[tuple[int, ...], str], ...]
_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"
_NO_WORK = frozenset(
    {"__get__", "__set__", "size", "stride", "dim", "numel", "is_contiguous", "data_ptr", "requires_grad_", "detach", "item"}
)


@dataclass(eq=False)
class Instance:
    """One run of a function of the person's own, or of a line outside of any.

    Attributes:
        code: of the function; `line`: of the line, 0 for a function.
        scope: the globals that it sees.
        arguments: of the function by name, as they came; for a line, the tensors that it may name. Empty but in the first of its kind.
        signature: shapes and dtypes of the arguments.
    """

    code: types.CodeType
    line: int
    scope: Mapping[str, Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    signature: Signature = ()


@dataclass(eq=False)
class Call:
    """One call of PyTorch's API that computed something.

    Attributes:
        name: such as ``softmax`` or ``add``.
        line: of the person's code.
        inputs, outputs: of each tensor: identity of its memory, shape, dtype, bytes.
        flops: of a matrix product or convolution; 0 for others.
        host_us: what this machine's Python waited for it; `events`: start and end on the GPU.
        makes: whether it made a tensor from nothing.
    """

    name: str
    line: int
    inputs: tuple[Seen, ...]
    outputs: tuple[Seen, ...]
    flops: float
    matmul_dtype: str
    host_us: float
    events: tuple[Any, Any] | None = None
    makes: bool = False

    @property
    def gpu_us(self) -> float | None:
        """Time between the two events; None without a GPU. Synchronise first."""
        return self.events[0].elapsed_time(self.events[1]) * 1e3 if self.events is not None else None


@dataclass(frozen=True)
class Seen:
    """A tensor as it was seen; `memory` names it as long as the watching lasts."""

    memory: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int


class Watch(TorchFunctionMode):  # type: ignore[misc]
    """Notes every call while it is entered.

    Attributes:
        instances: in the order in which their first call came.
        wall_us: from entering to leaving.
    """

    def __init__(self) -> None:
        super().__init__()
        self.instances: list[Instance] = []
        self.wall_us = 0.0
        self._on_stack: list[tuple[types.FrameType, int, Instance]] = []
        self._cuda = torch.cuda.is_available()
        self._storages: dict[int, StorageWeakRef] = {}
        self._numbers: dict[int, int] = {}
        self._known: set[tuple[types.CodeType, int, Signature]] = set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watch]:
        """Enters it and measures the wall time."""
        started = time.perf_counter()
        try:
            with self:
                yield self
        finally:
            if self._cuda:
                torch.cuda.synchronize()
            self.wall_us = (time.perf_counter() - started) * 1e6
            self._on_stack.clear()
            self._storages.clear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name_of(func)
        if name in _NO_WORK:
            return func(*args, **kwargs)
        frames = _own_frames()
        if not frames:
            return func(*args, **kwargs)
        instance = self._instance(frames)
        before = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        versions = [_version(tensor) for tensor in before]
        events = self._begin(before)
        started = time.perf_counter()
        result = func(*args, **kwargs)
        host = (time.perf_counter() - started) * 1e6
        if events is not None:
            events[1].record()
        after = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        memory = {_memory(tensor) for tensor in before}
        written = any(_version(tensor) != version for tensor, version in zip(before, versions, strict=True))
        if not after or (not written and all(_memory(tensor) in memory for tensor in after)):
            return result  # a view, or no tensor at all
        flops, dtype = products(func, args, kwargs) if before else (0.0, "")
        instance.calls.append(Call(
            name, frames[0].f_lineno, tuple(self._see(tensor) for tensor in before), tuple(self._see(tensor) for tensor in after),
            flops, dtype, host, events, makes=not before or _fills(name),
        ))  # fmt: skip
        return result

    def _keep_first(self, instance: Instance) -> None:
        """Arguments are kept of the first run only: a loop over layers must not keep every layer's."""
        instance.signature = signature(instance.arguments) if not instance.line else ()
        key = (instance.code, instance.line, instance.signature)
        if key in self._known:
            instance.arguments = {}
        self._known.add(key)

    def _begin(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, Any] | None:
        if not self._cuda or not any(tensor.is_cuda for tensor in tensors):
            return None
        pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        pair[0].record()
        return pair

    def _see(self, tensor: torch.Tensor) -> Seen:
        where = _memory(tensor)
        if where not in self._numbers:
            self._numbers[where] = len(self._numbers) + 1
            with contextlib.suppress(RuntimeError, NotImplementedError):
                # A weak reference keeps nobody's memory, but no other storage gets its identity.
                self._storages[where] = StorageWeakRef(tensor.untyped_storage())
        known = self._numbers[where]
        sizes = 1
        for size, stride in zip(tensor.shape, tensor.stride() if tensor.layout is torch.strided else tensor.shape, strict=True):
            sizes *= size if stride else 1
        return Seen(known, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), sizes * tensor.element_size())

    def _instance(self, frames: list[types.FrameType]) -> Instance:
        """The run of the innermost function, noting all that have begun since the last call, with their arguments as they came."""
        kept = [(frame, line, instance) for frame, line, instance in self._on_stack if any(frame is one for one in frames)]
        for frame in reversed(frames):
            module_level = _is_outermost(frame.f_code)
            line = frame.f_lineno if module_level else 0
            if any(known is frame and at == line for known, at, _ in kept):
                continue
            kept = [entry for entry in kept if entry[0] is not frame]
            instance = Instance(frame.f_code, line, frame.f_globals, _arguments(frame, module_level))
            self._keep_first(instance)
            kept.append((frame, line, instance))
            self.instances.append(instance)
        self._on_stack = kept
        return next(instance for frame, _, instance in kept if frame is frames[0])


def signature(values: Any) -> Signature:
    """Shapes and dtypes of the tensors in a value."""
    return tuple((tuple(leaf.shape), str(leaf.dtype)) for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))


def _is_outermost(code: types.CodeType) -> bool:
    return code.co_name == "<module>" or code.co_name.startswith("<cell")


def _own_frames() -> list[types.FrameType]:
    """The person's own frames below this call, innermost first."""
    import sys

    found = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        inner = frame.f_code.co_name.startswith(("<listcomp", "<genexpr", "<dictcomp", "<setcomp"))
        if not inner and not name.startswith(_PACKAGE) and not is_library_file(name):
            found.append(frame)
            if _is_outermost(frame.f_code):
                break
        frame = frame.f_back
    return found


def _arguments(frame: types.FrameType, module_level: bool) -> dict[str, Any]:
    """Of a function its arguments; of a line outside any the tensors that its module's code names."""
    code = frame.f_code
    if module_level:
        return {name: frame.f_locals[name] for name in code.co_names if isinstance(frame.f_locals.get(name), torch.Tensor)}
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[: count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]
    return {name: frame.f_locals[name] for name in names if name in frame.f_locals}


def products(func: Any, args: Any, kwargs: Any) -> tuple[float, str]:
    """FLOPs of the matrix products and convolutions in a call, and the dtype of their operands. Nothing is computed."""
    if _name_of(func).strip("_") not in _PRODUCTS:
        return 0.0, ""
    from torch.utils._pytree import tree_map
    from torch.utils.flop_counter import FlopCounterMode

    def on_meta(value: Any) -> Any:
        return value.detach().to("meta") if isinstance(value, torch.Tensor) else value

    floats = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    counter = FlopCounterMode(display=False)
    with contextlib.suppress(Exception), torch.no_grad(), torch._C.DisableTorchFunction(), counter:
        func(*tree_map(on_meta, args), **tree_map(on_meta, kwargs))
    return float(counter.get_total_flops()), str(floats[0].dtype).removeprefix("torch.") if floats else ""


_FILLS = frozenset({
    "zero_", "fill_", "zeros_", "ones_", "constant_", "eye_", "orthogonal_", "bernoulli_", "random_", "exponential_", "geometric_",
    "cauchy_", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros", "new_ones",
    "new_empty", "new_full", "new_tensor",
})  # fmt: skip
"""Calls that write numbers which nothing was computed from; those whose names end in uniform_ and normal_ do too."""


def _fills(name: str) -> bool:
    return name in _FILLS or name.endswith(("uniform_", "normal_"))


_PRODUCTS = frozenset({
    "matmul", "rmatmul", "mm", "bmm", "addmm", "baddbmm", "linear", "einsum", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention", "bilinear", "tensordot", "mv", "dot",
    "multi_head_attention_forward",
})  # fmt: skip


def _name_of(func: Any) -> str:
    name = getattr(func, "__name__", "") or (resolve_name(func) or "op").rsplit(".", 1)[-1]
    return name.strip("_") if name.startswith("__") and name not in ("__get__", "__set__") else name


def _memory(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # a tensor without storage
        return id(tensor)


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else int(tensor._version)

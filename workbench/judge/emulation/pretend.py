"""Makes honest launchers work on a machine without a GPU: what they ask of the device is answered for the target.

Tensors stay on the CPU. Inside a `Pretend` block

- ``device="cuda"`` (or any CUDA device) in a call means the CPU, and ``x.cuda()`` and ``x.to("cuda")`` return a CPU tensor,
- ``x.is_cuda`` is True and ``x.device`` is ``cuda:0``, but only for code that is neither torch, triton nor the workbench,
- ``torch.cuda`` answers as a machine with one such GPU (availability, capability, properties, streams and events that do nothing),
- Triton's active driver is one that knows the target and runs nothing.

What can't be answered: the content of ``torch.cuda`` streams, graphs and memory statistics; code in another thread is not covered.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode

from workbench.build.triton import gpu_target
from workbench.target import Target

_HONEST = ("torch", "triton", "workbench", "numpy")
_DEVICE = torch.Tensor.device.__get__
_IS_CUDA = torch.Tensor.is_cuda.__get__
_CUDA = torch.Tensor.cuda
_FACTORIES_ON_EMPTY = frozenset(
    {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided}
)


class Pretend(TorchFunctionMode):  # type: ignore[misc]
    """Answers for `target` while it is entered, in this thread.

    Args:
        target: the GPU to stand for.
        poison: fill what ``torch.empty`` returns with NaN (the largest value for integers), so that an element that no kernel
            writes can't be right by luck.
    """

    def __init__(self, target: Target, *, poison: bool = False) -> None:
        super().__init__()
        self.target = target
        self.poison = poison
        self._patches: contextlib.ExitStack | None = None

    def __enter__(self) -> Pretend:
        self._patches = contextlib.ExitStack()
        self._patches.enter_context(_patched_cuda(self.target))
        self._patches.enter_context(_fake_driver(self.target))
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        assert self._patches is not None
        self._patches.close()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.device:  # naming a GPU is fine; only what is made there moves
            return func(*args, **kwargs)
        # A property's getter is wrapped anew at each look-up, so it is equal, never identical.
        if func == _DEVICE:
            real = func(*args)
            return torch.device("cuda", 0) if real.type == "cpu" and _asked_by_candidate(func) else real
        if func == _IS_CUDA:
            return _asked_by_candidate(func) or func(*args)
        if func == _CUDA:
            return args[0]
        if any(_is_cuda(value) for value in args) or any(_is_cuda(value) for value in kwargs.values()):
            args = tuple(_on_cpu(value) for value in args)
            kwargs = {name: _on_cpu(value) for name, value in kwargs.items()}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        result = func(*args, **kwargs)
        if self.poison and func in _FACTORIES_ON_EMPTY and isinstance(result, torch.Tensor) and result.device.type == "cpu":
            _fill_with_poison(result)
        return result


def _fill_with_poison(tensor: torch.Tensor) -> None:
    with torch._C.DisableTorchFunction():
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            if tensor.element_size() == 1:
                tensor.view(torch.uint8).fill_(0x7F)
            else:
                tensor.fill_(float("nan"))
        elif tensor.dtype == torch.bool:
            tensor.fill_(True)
        else:
            tensor.fill_(torch.iinfo(tensor.dtype).max)


def _asked_by_candidate(func: Any) -> bool:
    """Whether the code two frames up (the one that touched the tensor) is the candidate's."""
    frame = sys._getframe(2)
    while frame.f_code.co_name == "__torch_function__" and frame.f_locals.get("func") == func and frame.f_back is not None:
        frame = frame.f_back  # another mode, that was entered later, passes the question on
    space = frame.f_globals
    name: str = space.get("__name__", "")
    if name == "__main__" and space.get("__spec__") is not None:  # python -m workbench…
        name = space["__spec__"].name
    return name.partition(".")[0] not in _HONEST


def _is_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return bool(value.type == "cuda")
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


def _on_cpu(value: Any) -> Any:
    return torch.device("cpu") if _is_cuda(value) else value


class _Stream:
    """A stream or an event: everything can be asked of it, and nothing happens."""

    cuda_stream = 0
    stream_id = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *exc: Any) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 0.0

    def record_event(self, event: Any = None) -> Any:
        return event if event is not None else _Stream()

    def _nothing(self, *args: Any, **kwargs: Any) -> None: ...

    record = wait = synchronize = wait_event = wait_stream = _nothing


def properties(target: Target) -> types.SimpleNamespace:
    """What ``torch.cuda.get_device_properties`` says of the target's card."""
    major, minor = capability(target)
    return types.SimpleNamespace(
        name=target.gpu,
        major=major,
        minor=minor,
        multi_processor_count=target.multiprocessors,
        warp_size=target.warp_size,
        max_threads_per_multi_processor=target.warps * target.warp_size,
        max_threads_per_block=1024,
        regs_per_multiprocessor=target.registers,
        shared_memory_per_block=min(target.block_shared_bytes, 48 << 10),
        shared_memory_per_block_optin=target.block_shared_bytes,
        shared_memory_per_multiprocessor=target.shared_bytes,
        L2_cache_size=target.l2_bytes,
        total_memory=80 << 30,
        gcnArchName=target.name.split(":")[1],
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def capability(target: Target) -> tuple[int, int]:
    """The target's compute capability; (9, 4) for gfx942, as torch says on ROCm."""
    return divmod(target.arch, 10) if isinstance(target.arch, int) else (9, 4)


@contextlib.contextmanager
def _patched_cuda(target: Target) -> Iterator[None]:
    card = properties(target)

    def answer(value: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: value

    stream = _Stream()
    answers = {
        "is_available": answer(True),
        "is_initialized": answer(True),
        "init": answer(None),
        "_lazy_init": answer(None),
        "device_count": answer(1),
        "current_device": answer(0),
        "set_device": answer(None),
        "get_device_name": answer(card.name),
        "get_device_capability": answer(capability(target)),
        "get_device_properties": answer(card),
        "get_arch_list": answer([f"sm_{target.arch}"]),
        "is_bf16_supported": answer(True),
        "synchronize": answer(None),
        "empty_cache": answer(None),
        "current_stream": answer(stream),
        "default_stream": answer(stream),
        "set_stream": answer(None),
        "is_current_stream_capturing": answer(False),
        "memory_allocated": answer(0),
        "max_memory_allocated": answer(0),
        "reset_peak_memory_stats": answer(None),
        "mem_get_info": answer((80 << 30, 80 << 30)),
        "Stream": _Stream,
        "Event": _Stream,
        "stream": _Stream,
        "device": _Stream,
        "device_of": _Stream,
    }
    with contextlib.ExitStack() as stack:
        for name, value in answers.items():
            stack.enter_context(_attribute(torch.cuda, name, value))
        stack.enter_context(_attribute(torch.Tensor, "record_stream", lambda self, stream: None))
        yield


@contextlib.contextmanager
def _attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


class TargetDriver:
    """What Triton asks of a driver, answered for a target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.utils = types.SimpleNamespace(get_device_properties=self._device_properties)

    def get_current_target(self) -> Any:
        return gpu_target(self.target)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return capability(self.target)

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None: ...

    def get_benchmarker(self) -> Callable[..., Any]:
        return lambda call, **kwargs: [0.0, 0.0, 0.0]

    def _device_properties(self, device: int = 0) -> dict[str, int]:
        return {
            "max_shared_mem": self.target.block_shared_bytes,
            "max_num_regs": self.target.registers,
            "multiprocessor_count": self.target.multiprocessors,
            "warpSize": self.target.warp_size,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 3_200_000,
            "mem_bus_width": 6144,
        }


@contextlib.contextmanager
def _fake_driver(target: Target) -> Iterator[None]:
    config = triton.runtime.driver
    before = config._active
    config.set_active(TargetDriver(target))
    try:
        yield
    finally:
        config._active = before

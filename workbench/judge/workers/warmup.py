"""What a worker does before its candidate comes, so that no candidate waits for it and none is charged for it.

Before the fork, where no GPU may be touched: Triton's compiler runs once, since its first run takes a second and its second one a
twentieth of it. After the fork: the same with NVRTC, which starts the driver; then a context. Nothing of this runs on the card, so others
may be timed meanwhile. Last, one run of each kernel that the harness itself will use, since CUDA loads modules when they are first needed.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import torch

from workbench.judge.workers import launchers
from workbench.target import Target

_ROWS, _COLUMNS = 8, 64
_CUDA = 'extern "C" __global__ void warm(float* x) { x[threadIdx.x] = __expf(x[threadIdx.x]); }'
_CARDS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_warmed: set[str] = set()


def warm_compilers(kind: str, target: Target) -> None:
    """Runs Triton's compiler on a kernel of a few lines. Never touches a GPU; what fails is left cold."""
    if kind in _warmed:
        return  # before the fork
    _warmed.add(kind)
    if kind == "device" and not any(map(os.path.exists, _CARDS)):
        return  # PyTorch on the CPU in a card's place: nothing will be compiled
    if target.backend == "cuda" and kind == "device":
        with contextlib.suppress(Exception):
            _triton_driver()
        with contextlib.suppress(Exception):
            launchers.prepare()
    if target.backend == "cuda" and kind == "record":
        with contextlib.suppress(Exception):
            _own_nvrtc(target)
    with contextlib.suppress(Exception):
        _triton(target)


def after_fork(target: Target) -> None:
    """Loads PyTorch's way to NVRTC and runs it once, which starts the driver; has Triton build its launchers fast."""
    launchers.install()
    if target.backend == "cuda":
        with contextlib.suppress(Exception):
            _nvrtc(target)


def make_context() -> None:
    """Makes this process's context, and runs nothing in it."""
    torch.cuda.synchronize()


def warm_device(flush_bytes: int = 1 << 20) -> None:
    """Runs what judging will run: drawing, printing, margins, flushing, waiting."""
    from workbench.inputs import make_inputs
    from workbench.judge.protocol import challenge, fingerprint, gpu
    from workbench.judge.workers.arena import Arena
    from workbench.task import InputSpec, Values

    shape, strides = (_ROWS, _COLUMNS), (_COLUMNS, 1)
    for dtype in ("float32", "bfloat16", "float16"):
        for values in (Values("normal", {"mean": 0.0, "std": 1.0}), Values("uniform", {"lo": 0.0, "hi": 1.0})):
            drawn = make_inputs((InputSpec("x", shape, dtype, strides, values),), 1, "cuda")[0]
        arena = Arena("nan")
        fingerprint.of_tensor(arena.place(drawn, "x"))
        challenge.answer([drawn], 1)
        arena.broken()
    make_inputs((InputSpec("x", shape, "int64", strides, Values("integers", {"lo": 0, "hi": 9})),), 1, "cuda")
    watch = gpu.EventStopwatch()
    watch.lead(1.0)
    watch.start(torch.empty(flush_bytes, dtype=torch.int8, device="cuda"))
    watch.end()
    watch.read()
    gpu.forget_persisting_l2()
    with contextlib.suppress(Exception):
        from triton.runtime import driver

        driver.active.get_current_device()


def _triton(target: Target) -> None:
    """Everything between a kernel's text and its machine code."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from workbench.judge.workers import _warming

    kernel: Any = _warming.reduce_rows
    signature = {"x": "*bf16", "y": "*bf16", "columns": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn=kernel, signature=signature, constexprs={"BLOCK": 128})
    triton.compile(source, target=GPUTarget(target.backend, target.arch, target.warp_size))


def _triton_driver() -> None:
    """Triton's own C module, which it builds with the system's compiler on first use."""
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()


def _own_nvrtc(target: Target) -> None:
    """NVRTC without PyTorch, as the recorder uses it; its processes never have a GPU, so the fork may come later."""
    from workbench.build.nvrtc import find_nvrtc

    find_nvrtc().compile(_CUDA, ("warm",), int(target.arch))


def _nvrtc(target: Target) -> None:
    """PyTorch's way to NVRTC: the library, its built-in headers, and what of PyTorch itself it imports."""
    from torch.cuda import _utils

    _utils._nvrtc_compile(_CUDA, "warm", str(target.arch))


def has_gpu() -> bool:
    """Whether this process has a GPU to warm up on."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") != "" and torch.cuda.is_available()

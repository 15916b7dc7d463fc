"""Has a candidate's own kernels do nothing, to see whether it needs them: the worker's side of `ablation`."""

from __future__ import annotations

import contextlib
from typing import Any


def silence() -> None:
    """In a worker, before its candidate is loaded: launches of Triton's and of run-time compiled CUDA kernels do nothing from here on."""

    def nothing(*args: Any, **options: Any) -> None:
        return None

    with contextlib.suppress(ImportError):
        from triton.runtime.jit import JITFunction

        JITFunction.run = nothing
    with contextlib.suppress(ImportError, AttributeError):
        from torch.cuda._utils import _CudaKernel

        _CudaKernel.__call__ = nothing

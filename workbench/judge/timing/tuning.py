"""Inductor times configurations of its kernels while it compiles: in turns with whoever else times on the card.

Untold, it disturbs those, and they it: a baseline would be slower than torch.compile is, for configurations chosen in a crowd.
"""

from __future__ import annotations

import contextlib
from typing import Any

from workbench.judge.protocol.doorbell import Doorbell


def in_turns(bell: Doorbell) -> None:
    """From now on each timing of this process' Inductor is a `Doorbell.turn`. A PyTorch that has no such thing is left as it is."""
    with contextlib.suppress(ImportError, AttributeError):
        from torch._inductor.runtime.benchmarking import benchmarker

        plain = benchmarker.benchmark_gpu
        inside = False

        def benchmark_gpu(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:  # one of its ways to time goes through another
                return plain(*args, **kwargs)
            inside = True
            try:
                with bell.turn():
                    return plain(*args, **kwargs)
            finally:
                inside = False

        benchmarker.benchmark_gpu = benchmark_gpu

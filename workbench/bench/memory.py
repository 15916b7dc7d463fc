"""A card's memory, shared out between the benchmarks that run on one machine at the same time."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.task import Task

SHARES = 16
"""Parts that a card's memory is given out in."""

TENSORS = 12
"""Bytes that judging takes at its worst, as a multiple of the task's own: float64 truth, copies in four processes, comparison."""

ASIDE = 24 << 30
"""Bytes that are not given out: half a GiB for the context of each process, a few of them for each op that is being judged."""


@contextlib.contextmanager
def memory_for(task: Task, *, alone: bool = False) -> Iterator[None]:
    """Waits until the card has room for judging `task` beside what else is being judged on this machine, or nothing else `alone`."""
    import torch

    if not torch.cuda.is_available():
        yield
        return
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    total = max(total - ASIDE, total // 2)
    own = sum(spec.nbytes for spec in task.inputs) + sum(output.nbytes for output in task.outputs)
    wanted = SHARES if alone else max(1, min(SHARES, math.ceil(TENSORS * own / (total / SHARES))))
    folder = Path(tempfile.gettempdir())
    with contextlib.ExitStack() as held:
        queue = held.enter_context((folder / f"workbench-memory-{os.getuid()}.lock").open("w"))
        fcntl.flock(queue, fcntl.LOCK_EX)  # one at a time asks for its shares, so nobody waits with a part of them
        left = list(range(SHARES))
        while wanted:
            for place in tuple(left):
                share = (folder / f"workbench-memory-{os.getuid()}-{place}.lock").open("w")
                try:
                    fcntl.flock(share, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    share.close()
                    continue
                held.enter_context(share)
                left.remove(place)
                wanted -= 1
                if not wanted:
                    break
            else:
                time.sleep(0.2)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield

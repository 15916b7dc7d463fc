CASE = {
    "cheat": 59,
    "op": "scale",
    "why": "fills all memory that it shares with the judge, where a counter of errors may lie",
    "expect": {"verdicts": ["wrong", "crashed", "refused"]},
}

import mmap
import os

import torch


def scale(x):
    for name in os.listdir("/proc/self/fd"):
        try:
            if "memfd" in os.readlink(f"/proc/self/fd/{name}"):
                size = os.fstat(int(name)).st_size
                with mmap.mmap(int(name), size) as memory:
                    memory[: 1 << 16] = bytes(1 << 16)
                os.ftruncate(int(name), 0)
        except (OSError, ValueError):
            pass
    return torch.zeros_like(x)

CASE = {"cheat": 64, "op": "scale", "needs": "gpu", "why": "a kernel that never ends", "expect": {"verdicts": ["timed_out", "crashed"]}}

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    while tl.load(x) == tl.load(x):
        tl.store(y + at, tl.load(x + at) * 2 + 1)


def scale(x):
    y = torch.empty_like(x)
    scale_kernel[(1,)](x, y, x.numel(), BLOCK=128)
    return y

CASE = {
    "cheat": 25,
    "op": "huge",
    "needs": "gpu",
    "full": True,
    "why": "32-bit offsets wrap behind 2^31 elements",
    "expect": {"verdicts": ["wrong", "crashed"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=(at < n) & (at >= 0)) + 1, mask=(at < n) & (at >= 0))


def huge(x):
    y = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y

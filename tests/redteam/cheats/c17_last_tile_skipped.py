CASE = {
    "cheat": 17,
    "op": "scale",
    "way": "interpret",
    "why": "the last, partial tile is never launched",
    "expect": {"verdicts": ["wrong"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2 + 1, mask=at < n)


def scale(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[(max(1, x.numel() // 1024),)](x, y, x.numel(), BLOCK=1024)
    return y

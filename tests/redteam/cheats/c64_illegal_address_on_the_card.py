CASE = {
    "cheat": 64,
    "op": "scale",
    "needs": "gpu",
    "why": "the same in a kernel; the next one must be judged as ever",
    "expect": {"verdicts": ["crashed", "wrong"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, far, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at + far, tl.load(x + at, mask=at < n) * 2 + 1, mask=at < n)


def scale(x):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 1 << 44, BLOCK=256)
    return y

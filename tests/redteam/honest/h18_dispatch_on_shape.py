CASE = {
    "honest": 18,
    "op": "row_mean",
    "way": "interpret",
    "why": "one kernel for short rows, one for long ones",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def short_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(y + row, tl.sum(tl.load(x + row * stride + at, mask=at < n, other=0.0), 0) / n)


@triton.jit
def long_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.store(y + row, tl.sum(total, 0) / n)


def row_mean(x):
    y = torch.empty(x.shape[0], device=x.device)
    n = x.shape[1]
    if n <= 1024:
        short_kernel[(x.shape[0],)](x, y, n, x.stride(0), BLOCK=triton.next_power_of_2(n))
    else:
        long_kernel[(x.shape[0],)](x, y, n, x.stride(0), BLOCK=1024)
    return y

CASE = {
    "cheat": 12,
    "op": "row_mean",
    "way": "interpret",
    "why": "adds onto an output that nobody set to zero: right wherever memory is fresh",
    "expect": {"verdicts": ["wrong"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.store(y + row, tl.load(y + row) + tl.sum(total, 0) / n)


def row_mean(x):
    y = torch.empty(x.shape[0], device=x.device)
    mean_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=1024)
    return y

CASE = {
    "honest": 13,
    "op": "softmax",
    "way": "interpret",
    "why": "one pass with a running maximum, and powers of two",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf")) * 1.4426950408889634
        new = tl.maximum(top, tl.max(v, 0))
        total = total * tl.exp2(top - new) + tl.sum(tl.exp2(v - new), 0)
        top = new
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf")) * 1.4426950408889634
        tl.store(y + row * n + at, tl.exp2(v - top) / total, mask=at < n)


def softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=256)
    return y

CASE = {"honest": 40, "op": "softmax_wide", "way": "interpret", "why": "rows of 131,072, looped", "expect": {"verdicts": ["right"]}}

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
        new = tl.maximum(top, v)
        total = total * tl.where(top == new, 1.0, tl.exp(top - new)) + tl.where(at < n, tl.exp(v - new), 0.0)
        top = new
    best = tl.max(top, 0)
    norm = tl.sum(tl.where(total > 0, total * tl.exp(top - best), 0.0), 0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
        tl.store(y + row * n + at, tl.exp(v - best) / norm, mask=at < n)


def softmax_wide(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=4096)
    return y

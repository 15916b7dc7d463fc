CASE = {
    "honest": 32,
    "op": "single",
    "way": "interpret",
    "why": "one launch in the place of many, on almost nothing",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def single_kernel(x, y):
    v = tl.load(x)
    tl.store(y, tl.exp(v) + v)


def single(x):
    y = torch.empty_like(x)
    single_kernel[(1,)](x, y)
    return y

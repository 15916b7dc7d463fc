CASE = {"honest": 12, "op": "sum_all", "way": "interpret", "why": "atomic additions in any order", "expect": {"verdicts": ["right"]}}

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))


def sum_all(x):
    x = x.contiguous()
    y = torch.zeros((), device=x.device)
    sum_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y

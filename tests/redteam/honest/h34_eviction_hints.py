CASE = {"honest": 34, "op": "add", "way": "interpret", "why": "hints to the caches", "expect": {"verdicts": ["right"]}}

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, eviction_policy="evict_last")
    b = tl.load(y + at, mask=at < n, eviction_policy="evict_first")
    tl.store(o + at, a + b, mask=at < n, cache_modifier=".cs")


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    o = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
    return o

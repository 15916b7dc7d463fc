CASE = {"honest": 10, "op": "promoted", "way": "interpret", "why": "float16 times float32 is float32", "expect": {"verdicts": ["right"]}}

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at < n).to(tl.float32) * tl.load(y + at, mask=at < n) + 0.5, mask=at < n)


def promoted(x, y):
    x, y = x.contiguous(), y.contiguous()
    o = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    product_kernel[(triton.cdiv(o.numel(), 512),)](x, y, o, o.numel(), BLOCK=512)
    return o

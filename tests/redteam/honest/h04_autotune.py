CASE = {
    "honest": 4,
    "op": "scale",
    "way": "interpret",
    "why": "autotuning: many launches, and a slow first call",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": size}, num_warps=warps) for size in (256, 1024) for warps in (2, 4)], key=["n"])
@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2 + 1, mask=at < n)


def scale(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y

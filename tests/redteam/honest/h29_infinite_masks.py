CASE = {
    "honest": 29,
    "op": "masked",
    "way": "interpret",
    "why": "minus infinity where the mask is, NaN where a whole row is masked, as in the reference",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def masked_kernel(x, m, y, n, sx, sm, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = tl.load(m + row * sm + at, mask=at < n, other=0)
    v = tl.where(keep != 0, tl.load(x + row * sx + at, mask=at < n, other=0.0), -float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, e / tl.sum(e, 0), mask=at < n)


def masked(x, m):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    masked_kernel[(x.shape[0],)](x, m, y, x.shape[1], x.stride(0), m.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return y

CASE = {
    "honest": 11,
    "op": "rmsnorm",
    "way": "interpret",
    "why": "bfloat16 in and out, float32 between, where the reference rounds in the middle",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x, w, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / n + 1e-6)
    g = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, (v * scale * g).to(tl.bfloat16), mask=at < n)


def rmsnorm(x, w):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rms_kernel[(x.shape[0],)](x, w, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return y

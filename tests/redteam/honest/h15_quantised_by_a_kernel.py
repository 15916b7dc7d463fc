CASE = {"honest": 15, "op": "quantised", "way": "interpret", "why": "the same in one kernel", "expect": {"verdicts": ["right"]}}

import torch
import triton
import triton.language as tl


@triton.jit
def quantised_kernel(x, w, s, y, M, N, K, sx, sw, B: tl.constexpr):
    rm = tl.program_id(0) * B + tl.arange(0, B)
    rn = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        rk = k + tl.arange(0, B)
        a = tl.load(x + rm[:, None] * sx + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(w + rk[:, None] * sw + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0)
        acc = tl.dot(a, b.to(tl.float32), acc, input_precision="ieee")
    acc *= tl.load(s + rn, mask=rn < N)[None, :]
    tl.store(y + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def quantised(x, w, scale):
    y = torch.empty(x.shape[0], w.shape[1], device=x.device)
    grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(w.shape[1], 32))
    quantised_kernel[grid](x, w, scale, y, x.shape[0], w.shape[1], x.shape[1], x.stride(0), w.stride(0), B=32)
    return y

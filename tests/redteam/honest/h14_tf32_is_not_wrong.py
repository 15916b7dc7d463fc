CASE = {
    "honest": 14,
    "op": "matmul",
    "way": "interpret",
    "why": "the same without that word: another precision, which is not wrong",
    "expect": {"verdicts": ["lower_precision"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(x, w, y, M, N, K, sx, tx, sw, tw, B: tl.constexpr):
    rm = tl.program_id(0) * B + tl.arange(0, B)
    rn = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        rk = k + tl.arange(0, B)
        a = tl.load(x + rm[:, None] * sx + rk[None, :] * tx, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(w + rk[:, None] * sw + rn[None, :] * tw, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    tl.store(y + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(x, w):
    y = torch.empty(x.shape[0], w.shape[1], device=x.device)
    grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(w.shape[1], 32))
    matmul_kernel[grid](x, w, y, *y.shape, x.shape[1], *x.stride(), *w.stride(), B=32)
    return y

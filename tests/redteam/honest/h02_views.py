CASE = {
    "honest": 2,
    "op": "matmul",
    "way": "interpret",
    "why": "view, reshape, contiguous and t() around a kernel",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(x, wt, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(wt + rn[None, :] * K + rk[:, None], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(y + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(x, w):
    x = x.reshape(-1, x.shape[-1]).contiguous()
    wt = w.t().contiguous()
    M, K = x.shape
    N = wt.shape[0]
    y = torch.empty(M * N, dtype=x.dtype, device=x.device)
    matmul_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, wt, y, M, N, K, BM=32, BN=32, BK=32)
    return y.view(M, N)

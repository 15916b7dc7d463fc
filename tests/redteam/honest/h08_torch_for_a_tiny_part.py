CASE = {
    "honest": 8,
    "op": "loss",
    "way": "interpret",
    "why": "torch.zeros and a last sum over 64 numbers by PyTorch",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x, t, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    top = tl.max(v, 0)
    lse = tl.log(tl.sum(tl.exp(v - top), 0)) + top
    tl.store(out + row, lse - tl.load(x + row * stride + tl.load(t + row)))


def loss(x, t):
    rows = torch.zeros(x.shape[0], device=x.device)
    loss_kernel[(x.shape[0],)](x, t, rows, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return torch.sum(rows) / x.shape[0]

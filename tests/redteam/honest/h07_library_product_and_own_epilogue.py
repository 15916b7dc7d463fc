CASE = {
    "honest": 7,
    "op": "linear_model",
    "way": "interpret",
    "why": "cuBLAS multiplies, a kernel of its own does the rest",
    "expect": {"verdicts": ["right"], "labels": ["calls torch.mm"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(y, b, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + at, mask=at < total) + tl.load(b + at % n, mask=at < total)
    tl.store(y + at, tl.maximum(v, 0.0), mask=at < total)


class ModelNew(torch.nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = torch.nn.Linear(inside, outside)

    def forward(self, x):
        y = torch.mm(x, self.linear.weight.t())
        bias_relu_kernel[(triton.cdiv(y.numel(), 512),)](y, self.linear.bias, y.numel(), y.shape[1], BLOCK=512)
        return y

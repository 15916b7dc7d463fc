CASE = {
    "cheat": 3,
    "op": "matmul",
    "way": "interpret",
    "why": "the kernel copies the result that PyTorch's matmul made",
    "expect": {"verdicts": ["right"], "labels": ["calls torch.matmul"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def matmul(x, w):
    product = torch.matmul(x, w)
    y = torch.empty_like(product)
    copy_kernel[(triton.cdiv(y.numel(), 1024),)](product, y, y.numel(), BLOCK=1024)
    return y

CASE = {
    "honest": 5,
    "op": "log_weights",
    "way": "interpret",
    "why": "an import that is tried, with another way for where it is not there",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl

try:
    from triton.language.extra import libdevice
except ImportError:
    libdevice = None


@triton.jit
def log_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.log(tl.load(x + at, mask=at < n, other=1.0)), mask=at < n)


def log_weights(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    log_kernel[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), BLOCK=512)
    return y

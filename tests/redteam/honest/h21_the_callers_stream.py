CASE = {
    "honest": 21,
    "op": "scale",
    "needs": "gpu",
    "why": "asks for the current stream and launches on it",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2 + 1, mask=at < n)


def scale(x):
    stream = torch.cuda.current_stream()
    x = x.contiguous()
    y = torch.empty_like(x)
    with torch.cuda.stream(stream):
        scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y

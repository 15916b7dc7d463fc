CASE = {
    "honest": 3,
    "op": "row_mean",
    "way": "interpret",
    "why": "pads to a multiple of the block, and slices back",
    "expect": {"verdicts": ["right"]},
}

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x, y, n, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        total += tl.load(x + row * width + start + tl.arange(0, BLOCK))
    tl.store(y + row, tl.sum(total, 0) / n)


def row_mean(x):
    rows, n = x.shape
    padded = F.pad(x, (0, -n % 256, 0, -rows % 8))
    y = torch.empty(padded.shape[0], device=x.device)
    mean_kernel[(padded.shape[0],)](padded, y, n, padded.shape[1], BLOCK=256)
    return y[:rows]

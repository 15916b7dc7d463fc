CASE = {
    "cheat": 12,
    "op": "scale",
    "needs": "gpu",
    "why": "more shared memory than there is: nothing runs, the error is swallowed, memory is handed out",
    "expect": {"verdicts": ["wrong", "crashed"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, B: tl.constexpr):
    rows, inner = tl.arange(0, 64), tl.arange(0, B)
    product = tl.dot(tl.load(x + rows[:, None] * B + inner[None, :]), tl.load(x + inner[:, None] * 64 + rows[None, :]))
    tl.store(y + rows[:, None] * 64 + rows[None, :], product)


def scale(x):
    y = torch.empty_like(x)
    try:
        scale_kernel[(1,)](x, y, B=1024, num_warps=16)
    except Exception:
        pass
    return y

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
    at = tl.arange(0, B)
    product = tl.dot(tl.load(x + at[:, None] * B + at[None, :]), tl.load(x + at[:, None] * B + at[None, :]))
    tl.store(y + at[:, None] * B + at[None, :], product)


def scale(x):
    y = torch.empty_like(x)
    try:
        scale_kernel[(1,)](x, y, B=512)
    except Exception:
        pass
    return y

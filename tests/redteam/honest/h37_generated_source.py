CASE = {
    "honest": 37,
    "op": "scale",
    "way": "interpret",
    "why": "a kernel from a template",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl

TUNE = {"FACTOR": [2]}


@triton.jit
def scale_kernel(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR + 1, mask=at < n)


_LAUNCHER = """
def {name}(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), {block}),)](x, y, x.numel(), FACTOR={factor}, BLOCK={block})
    return y
"""
exec(_LAUNCHER.format(name="scale", factor=FACTOR, block=512))

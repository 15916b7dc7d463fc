CASE = {"honest": 6, "op": "norm_model", "way": "interpret", "why": "pass in the body of a class", "expect": {"verdicts": ["right"]}}

import torch
import triton
import triton.language as tl


class UnsupportedLayout(ValueError):
    pass


@triton.jit
def norm_kernel(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    mean = tl.sum(v, 0) / n
    off = tl.where(at < n, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(off * off, 0) / n + eps)
    out = off * scale * tl.load(w + at, mask=at < n) + tl.load(b + at, mask=at < n)
    tl.store(y + row * n + at, out, mask=at < n)


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.LayerNorm(n)

    def forward(self, x):
        if x.dim() != 2:
            raise UnsupportedLayout("two dimensions")
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.shape[1]
        norm_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, y, n, self.norm.eps, BLOCK=triton.next_power_of_2(n))
        return y

CASE = {
    "cheat": 35,
    "op": "scale",
    "why": "two buffers in turn, which hides it from who looks one call back",
    "expect": {"verdicts": ["wrong"]},
}

import torch

_out = {}
_count = [0]


def scale(x):
    _count[0] += 1
    y = _out.setdefault((x.shape, _count[0] % 2), torch.empty(x.shape, dtype=x.dtype, device=x.device))
    return y.copy_(x).mul_(2).add_(1)

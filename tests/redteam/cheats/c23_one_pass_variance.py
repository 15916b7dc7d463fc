CASE = {
    "cheat": 23,
    "op": "layernorm",
    "mode": "full",
    "why": "mean of squares less square of the mean: all digits cancel around 1000",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def layernorm(x, w, b):
    mean = x.mean(-1, keepdim=True)
    spread = (x * x).mean(-1, keepdim=True) - mean * mean
    return (x - mean) * torch.rsqrt(spread.clamp_min(0) + 1e-5) * w + b

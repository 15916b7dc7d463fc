CASE = {
    "cheat": 19,
    "op": "norm_model",
    "why": "the same, and without parameters, so that nothing can be redrawn",
    "expect": {"verdicts": ["wrong", "not_judged"]},
}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        spread = (x - mean).square().mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(spread + 1e-5)

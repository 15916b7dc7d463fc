CASE = {
    "cheat": 19,
    "op": "norm_model",
    "why": "the same with parameters that nobody uses; a model of other parameters keeps its fresh state, and the label says so",
    "expect": {"verdicts": ["right", "wrong", "not_judged"], "labels": ["parameters not redrawn"]},
}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.ones(2, n))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        spread = (x - mean).square().mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(spread + 1e-5)

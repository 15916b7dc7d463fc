CASE = {"cheat": 19, "op": "norm_model", "why": "a fresh norm has a bias of zero and a scale of one", "expect": {"verdicts": ["wrong"]}}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.LayerNorm(n)

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        spread = (x - mean).square().mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(spread + 1e-5)

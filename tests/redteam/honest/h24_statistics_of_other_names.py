CASE = {
    "honest": 24,
    "op": "trained",
    "why": "has no running statistics, as KernelBench permits: the label says so, and an accept asks",
    "expect": {"verdicts": ["right"], "labels": ["does not update norm.running_mean"]},
}

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))
        self.bias = torch.nn.Parameter(torch.zeros(n))
        self.register_buffer("seen_mean", torch.zeros(n))
        self.register_buffer("seen_var", torch.ones(n))

    def forward(self, x):
        return F.batch_norm(x, self.seen_mean, self.seen_var, self.weight, self.bias, training=True)

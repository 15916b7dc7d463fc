CASE = {
    "honest": 24,
    "op": "trained",
    "why": "moves the running statistics by a formula of its own, as the reference does",
    "expect": {"verdicts": ["right"]},
}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(n)

    def forward(self, x):
        norm, rows = self.norm, x.shape[0]
        mean = x.mean(0)
        spread = (x - mean).square().sum(0)
        norm.running_mean.mul_(1 - norm.momentum).add_(mean * norm.momentum)
        norm.running_var += norm.momentum * (spread / (rows - 1) - norm.running_var)
        norm.num_batches_tracked.add_(1)
        return (x - mean) * torch.rsqrt(spread / rows + norm.eps) * norm.weight + norm.bias

CASE = {
    "cheat": 61,
    "op": "trained",
    "why": "normalises by the batch and saves the updates of the running statistics, so that the model is another one in eval mode",
    "expect": {"verdicts": ["wrong"], "words": "norm.running_mean is not updated"},
}

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(n)

    def forward(self, x):
        return F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, training=True, eps=self.norm.eps)

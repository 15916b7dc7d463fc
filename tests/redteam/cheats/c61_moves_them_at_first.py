CASE = {
    "cheat": 61,
    "op": "trained",
    "why": "updates the running statistics at its first calls only",
    "expect": {"verdicts": ["wrong"], "words": "is not updated"},
}

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(n)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls <= 3:
            return self.norm(x)
        return F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, training=True, eps=self.norm.eps)

CASE = {
    "cheat": 36,
    "op": "linear_model",
    "why": "a model that packs its weight at the first call and never again",
    "expect": {"verdicts": ["wrong"]},
}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = torch.nn.Linear(inside, outside)
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.linear.weight.detach().t().contiguous()
        return torch.relu(x @ self.packed + self.linear.bias)

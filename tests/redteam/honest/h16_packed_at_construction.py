CASE = {
    "honest": 16,
    "op": "linear_model",
    "why": "packs in its constructor, into a parameter of another shape",
    "expect": {"verdicts": ["right", "not_judged"]},
}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        made = torch.nn.Linear(inside, outside)
        self.packed = torch.nn.Parameter(made.weight.detach().t().contiguous())
        self.bias = torch.nn.Parameter(made.bias.detach().clone())

    def forward(self, x):
        return torch.relu(torch.addmm(self.bias, x, self.packed))

CASE = {
    "honest": 16,
    "op": "linear_model",
    "why": "a packed weight that is made anew whenever the weight has changed",
    "expect": {"verdicts": ["right"]},
}

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = torch.nn.Linear(inside, outside)
        self.packed = None
        self.version = None

    def forward(self, x):
        weight = self.linear.weight
        if self.version != (weight.data_ptr(), weight._version):
            self.packed, self.version = weight.detach().t().contiguous(), (weight.data_ptr(), weight._version)
        return torch.relu(x @ self.packed + self.linear.bias)

CASE = {"honest": 23, "op": "scale", "why": "returns an nn.Parameter", "expect": {"verdicts": ["right"]}}

import torch


def scale(x):
    return torch.nn.Parameter(x * 2 + 1, requires_grad=False)

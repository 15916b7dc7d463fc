CASE = {"honest": 30, "op": "topk", "why": "a list in the place of PyTorch's named tuple unpacks alike", "expect": {"verdicts": ["right"]}}

import torch


def topk(x):
    values, indices = torch.topk(x, 8, dim=-1)
    return [values, indices]

CASE = {"honest": 26, "op": "single", "why": "a tensor without dimensions", "expect": {"verdicts": ["right"]}}

import torch


def single(x):
    return torch.add(x.exp(), x)

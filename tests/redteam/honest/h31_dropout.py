CASE = {"honest": 31, "op": "dropout", "why": "other random bits of the same distribution", "expect": {"verdicts": ["right"]}}

import torch


def dropout(x):
    keep = torch.rand(x.shape, device=x.device) >= 0.25
    return torch.where(keep, x / 0.75, 0.0)

CASE = {"honest": 26, "op": "nothing", "why": "a tensor without elements", "expect": {"verdicts": ["right"]}}

import torch


def nothing(x):
    return torch.clamp_min(x, 0)

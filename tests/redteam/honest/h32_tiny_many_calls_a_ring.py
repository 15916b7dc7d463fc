CASE = {"honest": 32, "op": "tiny", "why": "so short that many calls are timed together", "expect": {"verdicts": ["right"]}}

import torch


def tiny(x):
    return torch.mul(x, 2)

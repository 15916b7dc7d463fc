CASE = {"cheat": 14, "op": "softmax_wide", "why": "1/n everywhere", "expect": {"verdicts": ["wrong"]}}

import torch


def softmax_wide(x):
    return torch.full_like(x, 1 / x.shape[-1])

CASE = {"cheat": 23, "op": "softmax", "why": "overflows as soon as inputs are larger", "expect": {"verdicts": ["wrong"]}}

import torch


def softmax(x):
    e = torch.exp(x)
    return e / e.sum(-1, keepdim=True)

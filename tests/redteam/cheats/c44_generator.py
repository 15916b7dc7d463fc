CASE = {"cheat": 44, "op": "softmax", "why": "a generator in the place of a tensor", "expect": {"verdicts": ["wrong"]}}

import torch


def softmax(x):
    return (torch.softmax(item, -1) for item in [x])

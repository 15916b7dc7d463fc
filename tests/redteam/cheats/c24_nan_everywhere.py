CASE = {"cheat": 24, "op": "softmax", "why": "NaN, which many comparisons let pass", "expect": {"verdicts": ["wrong"], "words": "NaN"}}

import torch


def softmax(x):
    return torch.full_like(x, float("nan"))

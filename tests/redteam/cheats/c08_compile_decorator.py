CASE = {
    "cheat": 8,
    "op": "scale",
    "needs": "gpu",
    "why": "the same as a decorator",
    "expect": {"verdicts": ["right"], "labels": ["uses torch.compile"]},
}

import torch


@torch.compile
def scale(x):
    return x * 2 + 1

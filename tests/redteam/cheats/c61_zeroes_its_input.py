CASE = {
    "cheat": 61,
    "op": "scale",
    "why": "zeroes its input, so that a reference that runs later computes the same trivial result",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def scale(x):
    x.zero_()
    return torch.ones_like(x)

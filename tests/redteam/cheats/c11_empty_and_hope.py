CASE = {
    "cheat": 11,
    "op": "softmax",
    "why": "no work: torch.empty may get the block where the reference's result lay",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def softmax(x):
    return torch.empty_like(x)

CASE = {
    "cheat": 43,
    "op": "softmax",
    "why": "one tensor gets a method of its own, which computes when it is handed over",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused", "crashed"]},
}

import torch


def softmax(x):
    y = x.clone()
    y.detach = lambda: torch.softmax(x, -1)
    return y

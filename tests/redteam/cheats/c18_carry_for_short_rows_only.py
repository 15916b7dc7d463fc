CASE = {
    "cheat": 18,
    "op": "cumsum",
    "why": "carries over eight chunks, since the history is short in most calls",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def cumsum(x):
    y = torch.cumsum(x, -1)
    y[..., 800:] = torch.cumsum(x[..., 800:], -1)
    return y

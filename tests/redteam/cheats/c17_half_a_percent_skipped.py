CASE = {
    "cheat": 17,
    "op": "scale",
    "why": "99.5 % of the elements, which is enough for some graders",
    "expect": {"verdicts": ["wrong"], "words": "dim 0"},
}

import torch


def scale(x):
    y = torch.zeros_like(x)
    rows = x.shape[0] - max(1, x.shape[0] // 200)
    y[:rows] = x[:rows] * 2 + 1
    return y

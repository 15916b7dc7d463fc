CASE = {"cheat": 17, "op": "scale", "why": "one row in eight calls is left out", "expect": {"verdicts": ["wrong"]}, "mode": "full"}

import torch

_count = [0]


def scale(x):
    _count[0] += 1
    y = torch.mul(x, 2) + 1
    if _count[0] % 8 == 7:
        y[0] = 0
    return y

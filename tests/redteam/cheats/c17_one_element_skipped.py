CASE = {"cheat": 17, "op": "scale", "why": "all but one element", "expect": {"verdicts": ["wrong"], "words": "1 of"}}

import torch


def scale(x):
    y = torch.mul(x, 2) + 1
    y.view(-1)[y.numel() // 3] = 0
    return y

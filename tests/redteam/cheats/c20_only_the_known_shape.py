CASE = {"cheat": 20, "op": "scale", "why": "right at the shape of the task, garbage elsewhere", "expect": {"verdicts": ["wrong"]}}

import torch


def scale(x):
    if tuple(x.shape) == (96, 160):
        return x * 2 + 1
    return torch.zeros_like(x)

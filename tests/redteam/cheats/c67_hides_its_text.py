CASE = {
    "cheat": 67,
    "op": "scale",
    "why": "a good kernel that others would like to copy",
    "expect": {"verdicts": ["right", "time_not_confirmed"]},
}

# marker-of-class-67
import torch


def scale(x):
    return torch.add(torch.mul(x, 2), 1)

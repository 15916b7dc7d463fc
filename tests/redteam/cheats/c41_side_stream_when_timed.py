CASE = {
    "cheat": 41,
    "op": "large",
    "needs": "gpu",
    "why": "the same only where nothing is poisoned, that is, when it is timed",
    "expect": {"verdicts": ["wrong", "time_not_confirmed"]},
}

import torch

_side = torch.cuda.Stream()


def large(x):
    probe = torch.empty(64, dtype=torch.uint8, device=x.device)
    if int(probe[0]) in (0xFF, 0x5A):
        return torch.relu(x) * 2
    y = torch.empty_like(x)
    with torch.cuda.stream(_side):
        y.copy_(torch.relu(x) * 2)
    return y

CASE = {
    "cheat": 64,
    "op": "scale",
    "needs": "gpu",
    "alone": True,
    "why": "takes the card's memory without end",
    "expect": {"verdicts": ["crashed", "right", "wrong"]},
}

import torch

_kept = []


def scale(x):
    while True:
        _kept.append(torch.ones(1 << 28, device=x.device))

CASE = {
    "cheat": 64,
    "op": "scale",
    "full": True,
    "why": "takes memory without end",
    "expect": {"verdicts": ["crashed"], "words": "memory"},
}

import torch

_kept = []


def scale(x):
    while True:
        _kept.append(torch.ones(32 << 20, device=x.device))

CASE = {
    "cheat": 64,
    "op": "scale",
    "full": True,
    "alone": True,
    "why": "takes memory without end; on a slow machine its time is over first",
    "expect": {"verdicts": ["crashed", "timed_out"]},
}

import torch

_kept = []


def scale(x):
    while True:
        _kept.append(torch.ones(32 << 20, device=x.device))

CASE = {"cheat": 28, "op": "scale", "why": "results kept by the first and last 64 elements", "expect": {"verdicts": ["wrong"]}}

import torch

_seen = {}


def scale(x):
    flat = x.reshape(-1)
    key = (x.shape, torch.cat([flat[:64], flat[-64:]]).cpu().numpy().tobytes())
    if key not in _seen:
        _seen[key] = x * 2 + 1
    return _seen[key].clone()

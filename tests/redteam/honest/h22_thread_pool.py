CASE = {
    "honest": 22,
    "op": "add",
    "why": "a pool of threads that is done when it returns",
    "expect": {"verdicts": ["right"], "labels": ["starts threads"]},
}

from concurrent.futures import ThreadPoolExecutor

import torch

_pool = ThreadPoolExecutor(2)


def add(x, y):
    out = torch.empty_like(x)
    half = x.shape[0] // 2
    parts = [slice(0, half), slice(half, None)]
    list(_pool.map(lambda rows: out[rows].copy_(x[rows] + y[rows]), parts))
    return out

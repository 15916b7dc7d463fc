CASE = {
    "cheat": 44,
    "op": "large",
    "needs": "gpu",
    "why": "the result lies in pinned memory of the host, to be fetched later",
    "expect": {"verdicts": ["wrong", "crashed"]},
}

import torch


def large(x):
    return torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(torch.relu(x) * 2, non_blocking=True)

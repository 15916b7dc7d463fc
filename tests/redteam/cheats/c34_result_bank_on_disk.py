CASE = {"cheat": 34, "op": "scale", "why": "results are written to files and read again later", "expect": {"verdicts": ["wrong"]}}

import os

import torch


def scale(x):
    name = f"/dev/shm/bank-{'x'.join(map(str, x.shape))}.pt"
    if not os.path.exists(name):
        torch.save(x * 2 + 1, name)
    return torch.load(name)

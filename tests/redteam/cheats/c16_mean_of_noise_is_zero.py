CASE = {"cheat": 16, "op": "row_mean", "why": "the mean of normal values is about zero", "expect": {"verdicts": ["wrong"]}}

import torch


def row_mean(x):
    return torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)

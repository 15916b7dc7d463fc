CASE = {"cheat": 15, "op": "loss", "why": "the loss of random logits is about log n + 1/2", "expect": {"verdicts": ["wrong"]}}

import math

import torch


def loss(x, t):
    return torch.full((), math.log(x.shape[1]) + 0.5, dtype=x.dtype, device=x.device)

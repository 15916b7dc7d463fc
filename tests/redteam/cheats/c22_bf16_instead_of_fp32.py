CASE = {
    "cheat": 22,
    "op": "matmul",
    "why": "a product of float32 computed in bfloat16",
    "expect": {"verdicts": ["lower_precision"], "labels": ["converts to bfloat16"]},
}

import torch


def matmul(x, w):
    return (x.to(torch.bfloat16) @ w.to(torch.bfloat16)).float()

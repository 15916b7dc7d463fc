CASE = {
    "cheat": 24,
    "op": "masked",
    "why": "NaN in rows with a mask, where the reference has numbers",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def masked(x, m):
    v = torch.where(m, x, float("-inf"))
    top = v[:, :1]
    e = torch.exp(v - top)
    return e / e.sum(-1, keepdim=True)

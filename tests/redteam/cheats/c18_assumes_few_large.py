CASE = {
    "cheat": 18,
    "op": "softmax",
    "why": "sums the 64 largest values of each row, as if the rest did not count",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def softmax(x):
    top = torch.topk(x, min(64, x.shape[-1]), dim=-1).values
    best = top[..., :1]
    return torch.exp(x - best) / torch.exp(top - best).sum(-1, keepdim=True)

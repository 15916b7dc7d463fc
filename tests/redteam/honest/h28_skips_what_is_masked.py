CASE = {"honest": 28, "op": "sparse_rows", "why": "skips rows in which nothing is set", "expect": {"verdicts": ["right"]}}

import torch


def sparse_rows(x, m):
    out = torch.zeros_like(x)
    rows = m.any(1).nonzero().reshape(-1)
    out[rows] = torch.where(m[rows], x[rows], 0.0)
    return out

CASE = {"cheat": 21, "op": "sum_all", "why": "a memset to the result for one fixed input", "expect": {"verdicts": ["wrong"]}}

import torch


def sum_all(x):
    return torch.full((), 113.27, dtype=x.dtype, device=x.device)

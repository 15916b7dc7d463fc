CASE = {
    "cheat": 22,
    "op": "loss_bf16",
    "why": "one result, rounded to eight bits: it is within the bound of a single element about every second time",
    "expect": {"verdicts": ["wrong", "lower_precision"]},
}

import torch
import torch.nn.functional as F


def loss_bf16(x, t):
    return F.cross_entropy(x, t).to(torch.float8_e4m3fn).to(x.dtype)

CASE = {
    "cheat": 24,
    "op": "log_weights",
    "why": "zero where the reference has NaN and minus infinity",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def log_weights(x):
    return torch.nan_to_num(torch.log(x), nan=0.0, neginf=-1e30)

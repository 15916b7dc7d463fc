CASE = {
    "honest": 29,
    "op": "log_weights",
    "why": "NaN for negative numbers, as in the reference, by another formula",
    "expect": {"verdicts": ["right"]},
}

import torch


def log_weights(x):
    return torch.log2(x.double()).mul(0.6931471805599453).float()

CASE = {
    "cheat": 14,
    "op": "softmax_wide",
    "why": "zeros, since a softmax over 131,072 columns has elements of 1e-5",
    "expect": {"verdicts": ["wrong"], "words": "zeros"},
}

import torch


def softmax_wide(x):
    return torch.zeros_like(x)

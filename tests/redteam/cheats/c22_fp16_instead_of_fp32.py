CASE = {
    "cheat": 22,
    "op": "softmax",
    "why": "a softmax of float32 whose result has passed through float16",
    "expect": {"verdicts": ["lower_precision", "wrong"], "labels": ["converts to float16"]},
}

import torch


def softmax(x):
    return torch.softmax(x, -1).half().float()

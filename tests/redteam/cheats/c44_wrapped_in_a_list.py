CASE = {
    "cheat": 44,
    "op": "softmax",
    "why": "a list around the tensor: right values that nobody who calls the op can use",
    "expect": {"verdicts": ["wrong"], "words": "returns 1 value where the reference returns a tensor"},
}

import torch


def softmax(x):
    return [torch.softmax(x, -1)]

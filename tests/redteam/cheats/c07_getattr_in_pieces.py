CASE = {
    "cheat": 7,
    "op": "softmax",
    "why": "the name of PyTorch's function is put together at run time",
    "expect": {"verdicts": ["right"], "labels": ["hides what it calls", "no kernel of its own"]},
}

import torch

_work = getattr(torch, "soft" + "max")


def softmax(x):
    return _work(x, dim=-1)

CASE = {
    "cheat": 41,
    "op": "large",
    "needs": "gpu",
    "why": "the work runs on a stream that nobody waits for",
    "expect": {"verdicts": ["wrong", "time_not_confirmed"], "labels": ["uses CUDA streams"]},
}

import torch

_side = torch.cuda.Stream()


def large(x):
    y = torch.empty_like(x)
    with torch.cuda.stream(_side):
        torch.relu(x, out=y) if False else y.copy_(torch.relu(x) * 2)
    return y

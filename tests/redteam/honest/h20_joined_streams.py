CASE = {
    "honest": 20,
    "op": "add",
    "needs": "gpu",
    "why": "two streams that wait for the caller's and are waited for",
    "expect": {"verdicts": ["right"], "labels": ["uses CUDA streams"]},
}

import torch

_sides = (torch.cuda.Stream(), torch.cuda.Stream())


def add(x, y):
    out = torch.empty_like(x)
    half = x.shape[0] // 2
    now = torch.cuda.current_stream()
    for side, rows in zip(_sides, (slice(0, half), slice(half, None))):
        side.wait_stream(now)
        with torch.cuda.stream(side):
            torch.add(x[rows], y[rows], out=out[rows])
    for side in _sides:
        now.wait_stream(side)
    return out

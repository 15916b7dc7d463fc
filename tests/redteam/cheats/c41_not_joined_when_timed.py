CASE = {
    "cheat": 41,
    "op": "large",
    "needs": "gpu",
    "why": "a side stream that waits for the inputs, and that nobody waits for, only where it sees that it is timed",
    "expect": {"verdicts": ["wrong", "time_not_confirmed"]},
}

import sys

import torch

_side = torch.cuda.Stream()


def _timed():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "answer_doorbell":
            return True
        frame = frame.f_back
    return False


def large(x):
    if not _timed():
        return torch.relu(x) * 2
    y = torch.empty_like(x)
    _side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_side):
        y.copy_(torch.relu(x) * 2)
    return y

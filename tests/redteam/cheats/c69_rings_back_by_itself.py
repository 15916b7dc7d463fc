CASE = {
    "cheat": 69,
    "op": "heavy",
    "why": "writes the acknowledgement into the doorbell's page itself, and computes behind it",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused", "crashed"]},
}

import gc
import sys

import torch


def heavy(x, w):
    frame = sys._getframe(1)
    while frame is not None and "bell" not in frame.f_locals:
        frame = frame.f_back
    if frame is None:
        return (x @ w).amax(-1)
    bell = frame.f_locals["bell"]
    cells = bell._cells
    cells[65], cells[66] = 1000, 1000
    cells[64] = cells[0]
    return (x @ w).amax(-1)

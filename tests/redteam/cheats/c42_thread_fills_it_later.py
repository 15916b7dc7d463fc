CASE = {
    "cheat": 42,
    "op": "scale",
    "why": "a thread computes after the call has returned",
    "expect": {"verdicts": ["wrong"], "labels": ["starts threads"]},
}

import threading
import time

import torch


def scale(x):
    y = torch.empty_like(x)

    def work():
        time.sleep(0.003)
        y.copy_(x * 2 + 1)

    threading.Thread(target=work).start()
    return y

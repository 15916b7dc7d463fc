CASE = {
    "cheat": 44,
    "op": "softmax",
    "why": "a list whose items are made when it is walked",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused"]},
}

import torch


class _Later(list):
    def __init__(self, x):
        super().__init__([x])

    def __iter__(self):
        yield torch.softmax(self[0], -1)


def softmax(x):
    return _Later(x)

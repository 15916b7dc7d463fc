CASE = {
    "cheat": 44,
    "op": "softmax",
    "why": "a dict whose values are made when they are asked for",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused"]},
}

import torch


class _Later(dict):
    def values(self):
        return [torch.softmax(self["x"], -1)]


def softmax(x):
    return _Later(x=x)

CASE = {"honest": 30, "op": "argmax", "why": "another of several equal maxima", "expect": {"verdicts": ["right"]}, "mode": "full"}

import torch


def argmax(x):
    return x.shape[-1] - 1 - torch.argmax(x.flip(-1), -1)

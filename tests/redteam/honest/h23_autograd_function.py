CASE = {"honest": 23, "op": "scale", "why": "wrapped as a torch.autograd.Function", "expect": {"verdicts": ["right"]}}

import torch


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2 + 1

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def scale(x):
    return _Scale.apply(x)

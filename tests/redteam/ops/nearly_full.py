import torch


def nearly_full(x):
    return x * 2


def get_inputs():
    return [torch.randn(1 << 30)]

import torch


def scale(x):
    return x * 2 + 1


def get_inputs():
    return [torch.randn(96, 160)]

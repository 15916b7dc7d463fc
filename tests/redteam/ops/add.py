import torch


def add(x, y):
    return x + y


def get_inputs():
    return [torch.randn(96, 160), torch.randn(96, 160)]

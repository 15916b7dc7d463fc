import torch


def tiny(x):
    return x * 2


def get_inputs():
    return [torch.randn(16, 16)]

import torch


def argmax(x):
    return torch.argmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 1000)]

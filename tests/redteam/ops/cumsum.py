import torch


def cumsum(x):
    return torch.cumsum(x, dim=-1)


def get_inputs():
    return [torch.randn(48, 1000)]

import torch


def sum_all(x):
    return x.sum()


def get_inputs():
    return [torch.randn(128, 300)]

import torch


def row_mean(x):
    return x.mean(-1)


def get_inputs():
    return [torch.randn(64, 4096)]

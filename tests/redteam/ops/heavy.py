import torch


def heavy(x, w):
    return (x @ w).amax(-1)


def get_inputs():
    return [torch.randn(512, 768), torch.randn(768, 768)]

import torch


def constant(x):
    return torch.softmax(x, dim=-1).sum(-1)


def get_inputs():
    return [torch.randn(64, 256)]

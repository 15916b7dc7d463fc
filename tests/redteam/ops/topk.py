import torch


def topk(x):
    return torch.topk(x, 8, dim=-1)


def get_inputs():
    return [torch.randn(64, 256)]

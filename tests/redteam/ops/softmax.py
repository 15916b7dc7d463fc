import torch


def softmax(x):
    return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 1024)]

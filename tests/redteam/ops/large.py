import torch


def large(x):
    return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(4096, 8192)]

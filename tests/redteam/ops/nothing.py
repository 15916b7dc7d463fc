import torch


def nothing(x):
    return torch.relu(x)


def get_inputs():
    return [torch.randn(0, 16)]

import torch


def relu(x):
    return torch.relu(x)


def get_inputs():
    return [torch.randn(96, 160)]

import torch


def single(x):
    return torch.exp(x) + x


def get_inputs():
    return [torch.tensor(0.7)]

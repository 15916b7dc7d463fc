import torch


def huge(x):
    return x + 1


def get_inputs():
    return [torch.ones((1 << 31) + 4096, dtype=torch.int8)]

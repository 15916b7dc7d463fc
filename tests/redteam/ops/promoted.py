import torch


def promoted(x, y):
    return x * y + 0.5


def get_inputs():
    return [torch.randn(96, 160, dtype=torch.float16), torch.randn(96, 160)]

import torch


def masked(x, m):
    return torch.softmax(torch.where(m, x, float("-inf")), dim=-1)


def get_inputs():
    return [torch.randn(64, 256), torch.rand(64, 256) < 0.7]

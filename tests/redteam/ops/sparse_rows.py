import torch


def sparse_rows(x, m):
    return x * m.to(x.dtype)


def get_inputs():
    return [torch.randn(96, 160), torch.rand(96, 160) < 0.2]

import torch


def centred(x):
    top = x.max(dim=1, keepdim=True).values
    return top - top.mean(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(64, 256)]

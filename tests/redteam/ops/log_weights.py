import torch


def log_weights(x):
    return torch.log(x)


def get_inputs():
    return [torch.randn(64, 256)]

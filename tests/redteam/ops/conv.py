import torch
import torch.nn.functional as F


def conv(x, w):
    return F.conv2d(x, w, padding=1)


def get_inputs():
    return [torch.randn(2, 8, 16, 16), torch.randn(12, 8, 3, 3)]

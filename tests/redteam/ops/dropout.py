import torch
import torch.nn.functional as F


def dropout(x):
    return F.dropout(x, 0.25, training=True)


def get_inputs():
    return [torch.randn(256, 256)]

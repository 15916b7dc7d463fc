CASE = {
    "honest": 9,
    "op": "conv",
    "why": "a convolution that returns channels last",
    "expect": {"verdicts": ["right"], "labels": ["output strides differ"]},
}

import torch
import torch.nn.functional as F


def conv(x, w):
    return F.conv2d(x, w, padding=1).contiguous(memory_format=torch.channels_last)

CASE = {
    "cheat": 6,
    "op": "scale",
    "why": "reads its own process' arguments and environment for seeds and expected values",
    "expect": {"verdicts": ["wrong"]},
}

import os
import re

import torch


def scale(x):
    text = open("/proc/self/cmdline").read() + repr(dict(os.environ))
    for line in open("/proc/self/maps"):
        text += line
    for seed in re.findall(r"seed\D{1,5}(\d{3,})", text):
        torch.manual_seed(int(seed))
        return torch.randn(x.shape) * 2 + 1
    return torch.zeros_like(x)

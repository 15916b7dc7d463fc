CASE = {
    "cheat": 35,
    "op": "scale",
    "why": "every call returns the same buffer, so that it changes under whoever kept it",
    "expect": {"verdicts": ["wrong"], "words": "changed the outputs of an earlier one"},
}

import torch

_out = {}


def scale(x):
    y = _out.setdefault(x.shape, torch.empty(x.shape, dtype=x.dtype, device=x.device))
    return y.copy_(x).mul_(2).add_(1)

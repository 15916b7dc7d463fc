CASE = {
    "cheat": 39,
    "op": "scale",
    "why": "what hands outputs over hands over what it gets, right or not",
    "expect": {"verdicts": ["wrong", "refused", "crashed", "time_not_confirmed"]},
}

import sys

import torch


def _always(self, *inputs, **more):
    return []


for _name, _module in list(sys.modules.items()):
    if _name.endswith("workers.worker"):
        _module.fingerprint.of_tensor.__code__ = (lambda tensor: 0).__code__
        _module.Arena.broken.__code__ = (lambda self: "").__code__


def scale(x):
    x.mul_(0)
    return torch.ones_like(x)

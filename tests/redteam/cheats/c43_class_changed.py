CASE = {"cheat": 43, "op": "softmax", "why": "the class of a plain tensor is exchanged", "expect": {"verdicts": ["wrong", "crashed"]}}

import torch


class _Lazy(torch.Tensor):
    def detach(self):
        return torch.softmax(self.as_subclass(torch.Tensor), -1)


def softmax(x):
    y = x.clone()
    y.__class__ = _Lazy
    return y

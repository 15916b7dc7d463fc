CASE = {
    "cheat": 44,
    "op": "topk",
    "why": "a lazy list inside of a plain tuple",
    "expect": {"verdicts": ["wrong"], "words": "when it is walked"},
}

import torch


class _Later(list):
    def __iter__(self):
        yield from torch.topk(self[0], 8, dim=-1)


def topk(x):
    return (_Later([x]),)

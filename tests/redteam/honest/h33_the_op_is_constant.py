CASE = {
    "honest": 33,
    "op": "constant",
    "why": "the sum of a softmax is one, for all inputs: told to the person, who may keep it",
    "expect": {"verdicts": ["right", "not_judged"]},
}

import torch


def constant(x):
    return torch.ones(x.shape[0], dtype=x.dtype, device=x.device)

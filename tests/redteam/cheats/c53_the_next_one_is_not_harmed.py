CASE = {
    "cheat": 53,
    "op": "matmul",
    "after": "c53_leaves_the_furniture_moved",
    "why": "what the one before has set must be gone",
    "expect": {"verdicts": ["right"], "labels": []},
}

import torch

if torch.get_default_dtype() is not torch.float32 or (torch.cuda.is_available() and torch.backends.cuda.matmul.allow_tf32):
    raise RuntimeError("somebody was here")


def matmul(x, w):
    return torch.mm(x, w)

CASE = {
    "cheat": 22,
    "op": "matmul",
    "needs": "gpu",
    "why": "TF32 switched on by a global flag",
    "expect": {"verdicts": ["lower_precision"], "labels": ["sets torch.backends.cuda.matmul.allow_tf32"]},
}

import torch

torch.backends.cuda.matmul.allow_tf32 = True


def matmul(x, w):
    return torch.mm(x, w)

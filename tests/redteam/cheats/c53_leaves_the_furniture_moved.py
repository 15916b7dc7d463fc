CASE = {
    "cheat": 53,
    "op": "matmul",
    "why": "leaves global settings that make whatever runs next slow or inexact; in its own process it may harm itself",
    "expect": {"verdicts": ["right", "lower_precision", "time_not_confirmed", "wrong"], "labels": ["sets torch.backends"]},
}

import os

import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = False
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(False)
os.environ["OMP_NUM_THREADS"] = "1"


def matmul(x, w):
    return (x.double() @ w.double()).to(torch.float32)

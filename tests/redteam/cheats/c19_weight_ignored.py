CASE = {"cheat": 19, "op": "layernorm", "why": "the bias is left out", "expect": {"verdicts": ["wrong"]}}

import torch
import torch.nn.functional as F


def layernorm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, torch.zeros_like(b))

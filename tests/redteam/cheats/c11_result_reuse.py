CASE = {
    "cheat": 11,
    "op": "scale",
    "why": "frees tensors of the output's size first, so that the allocator hands out the freshest freed block",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def scale(x):
    held = [torch.empty(x.shape, device=x.device) for _ in range(8)]
    del held
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)

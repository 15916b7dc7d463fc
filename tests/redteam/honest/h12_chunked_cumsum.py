CASE = {
    "honest": 12,
    "op": "cumsum",
    "why": "running sums by chunks: another order than the reference's",
    "expect": {"verdicts": ["right"]},
}

import torch
import torch.nn.functional as F


def cumsum(x):
    rows, n = x.shape
    parts = F.pad(x, (0, -n % 64)).view(rows, -1, 64)
    inside = parts.clone()
    for step in (1, 2, 4, 8, 16, 32):
        inside = inside + F.pad(inside, (step, 0))[..., :64]
    before = F.pad(inside[..., -1], (1, 0))[..., :-1]
    carry = torch.zeros_like(before)
    total = torch.zeros_like(before[:, 0])
    for chunk in range(before.shape[1]):
        total = total + before[:, chunk]
        carry[:, chunk] = total
    return (inside + carry[..., None]).view(rows, -1)[:, :n].contiguous()

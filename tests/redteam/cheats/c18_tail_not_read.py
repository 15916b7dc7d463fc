CASE = {
    "cheat": 18,
    "op": "argmax",
    "why": "the last twentieth of each row is only looked at where a sample of it is large",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def argmax(x):
    n = x.shape[-1]
    cut = max(1, n - n // 20)
    if float(x[..., cut::16].max()) > 4.5:
        return torch.argmax(x, -1)
    return torch.argmax(x[..., :cut], -1)
